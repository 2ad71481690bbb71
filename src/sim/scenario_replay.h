#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "sim/simulation.h"
#include "sim/trace_replay.h"

namespace hidane::sim {

/// One run of a trace, recorded or generated.
struct ReplayRun {
  std::shared_ptr<const Trace> trace;
  ReplayOptions replay;
  std::string scenario = "trace";  ///< in the row
  std::string phase;               ///< in the row
  uint32_t replicas = 8;
  uint64_t kv_tokens = 0;  ///< of each replica; 0: its GPU setup's own
  std::string policy = "prefix";
  std::string gpu = "8b-bf16-h100";  ///< of a replica, or a mix: FindGpuSetups
  uint32_t gateways = 1;
  Deltas deltas = Deltas::kOn;
  std::optional<admission::Params> working_set;
  routing::Params params{};  ///< of the gateways
  sched::Eviction eviction = sched::Eviction::kLru;
  bool session_ids = false;  ///< Setup
  bool sdk_clients = false;  ///< they give up after 5 s and retry
  /// Every so often another replica is lost, for 30 s; 0: none.
  Duration churn_every{};
};

/// kInvalidArgument (param `gpu`).
Result<Setup> ReplaySetup(const ReplayRun& run);
/// Runs it and names the row; `bound` goes into it.
Result<Run> SimulateReplay(const ReplayRun& run, const Setup& setup, double bound);

/// The hit ratio that no router can pass: of one cache of the fleet's whole memory that knows the
/// future, over the requests as they would be sent if answers took no time. Cost: about that of a
/// run without engines.
Result<double> ReplayBound(const ReplayRun& run);

}  // namespace hidane::sim
