#pragma once
#include <span>
#include <string>

#include "rows.h"
#include "steady.h"

namespace hidane::bench {

/// One line per kind of victims, keep and block size; `rows` as RunArms returns them, one after the
/// other.
void PrintArms(std::span<const Row> rows);
void PrintSteady(std::span<const SteadyRow> rows);
/// All rows with meta data, keys as in the contract of `make bench-vtoken`.
std::string ToJson(std::span<const Row> rows, std::span<const SteadyRow> steady, uint64_t seed,
                   const std::string& command);

}  // namespace hidane::bench
