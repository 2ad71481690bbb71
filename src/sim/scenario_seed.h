#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sim/simulation.h"
#include "sim/tenant_loop.h"

namespace hidane::sim {

/// Replicas and tenants: `16x80`, `16x100-zipf1`, `16x200-zipf0.8`, `16x100-servegen`. Any such
/// name may be asked for.
struct SeedFleet {
  std::string name;
  uint32_t replicas = 16;
  uint32_t tenants = 80;
  double zipf_s = 0;
  bool servegen = false;  ///< tenants as unequal as ServeGen's clients of large models
};
/// kInvalidArgument (param `fleet`), with the form expected.
Result<SeedFleet> ParseSeedFleet(std::string_view name);
std::span<const std::string_view> SeedFleets();  ///< those of the standard table

/// What happens in a run.
enum class SeedPhase : uint8_t {
  kColdBurst,       ///< 100 requests at once, empty caches
  kWarmBurst,       ///< the same after a warm-up and a pause
  kSustained,       ///< a closed loop of 100 clients after a warm-up
  kChurn,           ///< sustained, and every 2 s a tenant leaves or a new one appears
  kReplicaLoss,     ///< sustained; a replica is lost for 30 s
  kRollingUpgrade,  ///< sustained; every replica is drained, restarted, taken back
  kSingleTenant,    ///< sustained, one tenant
};
std::string_view Name(SeedPhase phase);  ///< as in rows: `cold_burst`, ...
/// kInvalidArgument (param `phase`), naming those there are.
Result<SeedPhase> ParseSeedPhase(std::string_view name);
std::span<const SeedPhase> SeedPhases();

/// One run of the seed scenario.
struct SeedRun {
  SeedFleet fleet;
  SeedPhase phase = SeedPhase::kSustained;
  std::string policy = "prefix";
  std::string gpu = "8b-bf16-h100";  ///< of a replica, or a mix: FindGpuSetups
  uint32_t gateways = 1;
  Deltas deltas = Deltas::kOn;
  routing::Params params{};  ///< of the gateways
  bool cache_tails = true;   ///< EngineOptions::cache_tails
  sched::Eviction eviction = sched::Eviction::kLru;
  uint64_t requests = 1'800;  ///< counted ones of a closed loop; 1,200 before them warm up
  uint64_t seed = 1;
};

/// The workload of a run, and its cluster; callers may change both before Simulate.
/// kInvalidArgument (param `gpu`).
TenantLoopOptions SeedWorkload(const SeedRun& run);
Result<Setup> SeedSetup(const SeedRun& run);

/// Runs it and names the row.
Result<Run> SimulateSeed(const SeedRun& run, const Setup& setup);

}  // namespace hidane::sim
