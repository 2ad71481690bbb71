#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "sim/simulation.h"

namespace hidane::sim {

/// How fast an engine computes on a CPU when it is alone, in tokens a second: what
/// `model_bench --threads 1 --cpu` prints. The defaults are one run's, see docs/simulator.md.
struct CpuRates {
  double prefill = 310;  ///< `prefill:512`
  double decode_1 = 18;  ///< `decode:1`
  double decode_4 = 50;  ///< `decode:4`, of all four together
};
/// The step model of such an engine: a prefill token costs what it costs, a decode step a part of
/// its own and the same for each sequence. kInvalidArgument (param `rates`): a rate isn't
/// positive, or four sequences take less time than one or more than four times as much.
Result<GpuSetup> CpuSetup(const CpuRates& rates, uint64_t kv_tokens);

/// The demo of `hidane up` in virtual time: small engines that share one machine's cores, agents
/// with tool schemas, first all of them in turn, then the counted requests.
struct DemoRun {
  CpuRates rates;
  uint32_t engines = 4, cores = 2, clients = 8, tenants = 16;
  uint32_t static_tokens = 1'000;  ///< of an agent, as the real demo is asked for
  uint32_t own_tokens = 37;
  uint32_t output_tokens = 24;
  uint64_t kv_tokens = 5'348;  ///< of an engine
  uint32_t warmup_rounds = 4;  ///< of one uncounted request of each agent
  uint64_t requests = 187;     ///< counted
  std::string policy = "prefix";
  routing::Params params{};  ///< of the gateways
  uint64_t seed = 1;
  uint64_t order_seed = 1;  ///< of the race between clients: who reaches the gateway first
};

/// kInvalidArgument (param `rates`).
Result<Setup> DemoSetup(const DemoRun& run);
/// Runs it and names the row.
Result<Run> SimulateDemo(const DemoRun& run, const Setup& setup);

}  // namespace hidane::sim
