#pragma once
#include <span>
#include <string>
#include <vector>

#include "quality.h"
#include "rows.h"
#include "steady.h"

namespace hidane::bench {

/// One line per kind of victims, keep and block size; `rows` as RunArms returns them, one after the
/// other.
void PrintArms(std::span<const Row> rows);
void PrintSteady(std::span<const SteadyRow> rows);
void PrintQuality(std::span<const QualityRow> rows);

/// Everything that was measured.
struct Results {
  std::vector<Row> rows = {};
  std::vector<SteadyRow> steady = {};
  std::vector<QualityRow> quality = {};
};
/// All rows with meta data, keys as in the contract of `make bench-vtoken`.
std::string ToJson(const Results& results, uint64_t seed, const std::string& command);

}  // namespace hidane::bench
