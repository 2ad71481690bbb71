#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "admission/working_set.h"
#include "base/clock.h"
#include "base/result.h"
#include "routing/router.h"
#include "sim/agreement.h"
#include "sim/engine.h"
#include "sim/operations.h"
#include "sim/orphans.h"
#include "sim/row.h"
#include "sim/series.h"
#include "sim/workload.h"

namespace hidane::sim {

/// A cluster and what is done to it.
struct Setup {
  std::vector<EngineOptions> engines;  ///< one a worker; mixed fleets are welcome
  uint32_t shared_cores = 0;           ///< > 0: engines are processes that share so many cores
  std::string policy = "prefix";       ///< one of SimPolicies()
  routing::Params params;
  routing::HealthParams health;
  uint32_t gateways = 1;  ///< requests are dealt to them in turn
  Deltas deltas = Deltas::kOn;
  std::optional<admission::Params> working_set;  ///< admission in front of the gateways
  bool session_ids = false;  ///< it knows conversations by their clients' word, not by prefix
  OnLeave on_leave = OnLeave::kCancel;  ///< Gateway::Options
  FleetPlan plan;
  TimePoint until = TimePoint::max();  ///< ends then even if requests are under way
  Duration series_step{};  ///< > 0, whole seconds: Run::series with the fleet's part, Run::ttft_s
  const Clock* wall = nullptr;  ///< times decisions; nullptr: not timed
  /// Called each virtual second with the requests that have ended; false ends the run.
  std::function<bool(TimePoint now, uint64_t ended)> on_second;
};

struct Run {
  Row row;  ///< what was measured; what ran is the caller's to fill in but for the policy
  Series series;
  std::vector<double> ttft_s;  ///< of counted requests that succeeded, ascending
  FleetPlan plan;              ///< the setup's
  uint64_t events = 0;
  uint64_t steps = 0;  ///< of engines
  uint64_t decisions = 0;
  uint64_t failovers = 0;
  uint64_t sent = 0;       ///< to engines
  uint64_t refreshes = 0;  ///< of them, the gateways' own
  uint64_t adopted = 0;    ///< runs whose client had left, by retries
  TimePoint ended{};
};

/// Policies that a Setup may name: the product's, and `oracle`.
std::span<const std::string_view> SimPolicies();

/// Runs `workload` on the cluster in virtual time until the last answer. Deterministic: same setup
/// and workload, same Run (but for what `wall` timed). kInvalidArgument (param `policy`,
/// `replicas`, `gateways`).
Result<Run> Simulate(const Setup& setup, Workload& workload);

}  // namespace hidane::sim
