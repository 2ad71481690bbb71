#pragma once
#include <cstdint>
#include <vector>

#include "cli/sim_jobs.h"
#include "cli/sim_trace.h"
#include "sim/scenario_demo.h"

namespace CLI {
class App;
}

namespace hidane::cli {

/// What `hidane sim --scenario demo` is told beside what every scenario is told.
struct SimDemoOptions {
  std::vector<double> rates;  ///< sim::CpuRates in its order; empty: its defaults
  uint32_t cores = 2, warmup_rounds = 4;
  uint32_t static_tokens = 0;  ///< see DemoOf
  uint64_t order_seed = 1;     ///< see sim::DemoRun
};
void AddSimDemoOptions(CLI::App& command, SimDemoOptions& options);

/// The demo of `hidane up` under each policy; none: the two that it shows. Of `common` it takes
/// policies, params, seed and requests (0: 187).
std::vector<SimCell> DemoCells(const SimDemoOptions& options, const CommonOptions& common);

}  // namespace hidane::cli
