#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/scenario_seed.h"

namespace hidane::sim {

/// Which runs of the seed scenario are wanted; empty lists mean the matrix's own choice.
struct MatrixOptions {
  std::vector<std::string> policies{}, fleets{}, phases{};
  std::vector<uint32_t> gateways{};
  std::optional<Deltas> deltas{};
  std::string gpu = "8b-bf16-h100";
  routing::Params params{};  ///< of the gateways
  bool cache_tails = true;   ///< EngineOptions::cache_tails
  sched::Eviction eviction = sched::Eviction::kLru;
  bool full = false;      ///< all policies x fleets x phases, larger, with kFullSeeds seeds
  uint64_t requests = 0;  ///< counted ones of a closed loop; 0: the matrix's own
  uint64_t seed = 1;
};
inline constexpr uint32_t kFullSeeds = 5;

/// The runs of one cell of the table: the same but for their seeds.
using Cell = std::vector<SeedRun>;

/// The standard matrix, about 100 cells (docs/simulator.md lists them), or the full one, with
/// `policies` alone where given. Where fleets, phases, gateways or deltas are given: the product
/// of the lists, each with its first choice as default. kInvalidArgument naming an unknown value.
Result<std::vector<Cell>> SeedMatrix(const MatrixOptions& options);

}  // namespace hidane::sim
