#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sim/retrying_clients.h"
#include "sim/scenario_seed.h"
#include "sim/tenant_loop.h"

namespace hidane::sim {

/// What stands between impatient clients and the engines; each does what the one before does, too.
enum class StormGuard : uint8_t {
  kNone,    ///< a plain proxy: engines never learn that a client has left
  kCancel,  ///< they drop its request
  kAttach,  ///< not at once: its retry finds it
};
std::string_view Name(StormGuard guard);  ///< as in rows: `none`, `cancel`, `attach`
/// kInvalidArgument (param `guard`), naming those there are.
Result<StormGuard> ParseStormGuard(std::string_view name);
std::span<const StormGuard> StormGuards();

/// Requests that arrive at random at 0.7 times what the fleet can serve, for 30 s at five times of
/// it, then at 0.7 again; clients give up after 5 s and retry as SDKs do.
/// Source: the acceptance experiment of docs/simulator.md, "A storm".
struct StormRun {
  SeedFleet fleet{.name = "8x40", .replicas = 8, .tenants = 40};
  std::string policy = "prefix";
  StormGuard guard = StormGuard::kCancel;
  std::string gpu = "8b-bf16-h100";  ///< of a replica, or a mix: FindGpuSetups
  uint32_t gateways = 1;
  Deltas deltas = Deltas::kOn;
  routing::Params params{};  ///< of the gateways
  std::optional<admission::Params> working_set{};
  /// Requests a second that a replica can serve, measured: docs/simulator.md.
  double capacity_per_replica = 4;
  uint64_t seed = 1;
};

TenantLoopOptions StormWorkload(const StormRun& run);
/// kInvalidArgument (param `gpu`).
Result<Setup> StormSetup(const StormRun& run);

/// Runs it and names the row: `recovery_s` is from the surge's end until 95 % of what is asked in
/// ten seconds is answered, for good.
Result<Run> SimulateStorm(const StormRun& run, const Setup& setup);

}  // namespace hidane::sim
