#pragma once
#include <string>
#include <vector>

#include "cli/sim_jobs.h"
#include "cli/sim_trace.h"

namespace hidane::cli {

/// What `hidane sim --scenario storm` is told beside what every scenario is told.
struct SimStormOptions {
  std::vector<std::string> guards;  ///< empty: all
};
void AddSimStormOptions(CLI::App& command, SimStormOptions& options);

/// The storm for each fleet, guard and policy; without policies: `round_robin` and `prefix`.
Result<std::vector<SimCell>> StormCells(const SimStormOptions& options,
                                        const std::vector<std::string>& fleets,
                                        const CommonOptions& common);

}  // namespace hidane::cli
