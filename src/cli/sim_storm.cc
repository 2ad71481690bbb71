#include "cli/sim_storm.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "sim/scenario_storm.h"

namespace hidane::cli {
namespace {

Result<std::vector<sim::StormGuard>> GuardsOf(const SimStormOptions& options) {
  const auto all = sim::StormGuards();
  if (options.guards.empty()) return std::vector<sim::StormGuard>(all.begin(), all.end());
  std::vector<sim::StormGuard> guards;
  for (const std::string& name : options.guards) {
    HIDANE_TRY(const sim::StormGuard guard, sim::ParseStormGuard(name));
    guards.push_back(guard);
  }
  return guards;
}

SimCell CellOf(sim::StormRun run, const CommonOptions& common) {
  SimCell cell;
  for (uint32_t i = 0; i < common.seeds; ++i) {
    run.seed = common.seed + i;
    cell.push_back({fmt::format("storm {} {}", run.policy, Name(run.guard)),
                    [run](const SimWatch& watch) -> Result<sim::Run> {
                      HIDANE_TRY(sim::Setup setup, StormSetup(run));
                      watch.Attach(setup);
                      return SimulateStorm(run, setup);
                    }});
  }
  return cell;
}

}  // namespace

Result<std::vector<SimCell>> StormCells(const SimStormOptions& options,
                                        const std::vector<std::string>& fleets,
                                        const CommonOptions& common) {
  HIDANE_TRY(const auto guards, GuardsOf(options));
  sim::StormRun run;
  run.gpu = common.gpu;
  run.deltas = common.deltas;
  run.params = common.params;
  std::vector<SimCell> cells;
  for (const std::string& fleet : OrOne(fleets, run.fleet.name)) {
    HIDANE_TRY(run.fleet, sim::ParseSeedFleet(fleet));
    for (const uint32_t gateways : OrOne(common.gateways, 1u)) {
      run.gateways = gateways;
      for (const auto& working_set : AdmissionsOf(common)) {
        run.working_set = working_set;
        for (const sim::StormGuard guard : guards) {
          run.guard = guard;
          for (const std::string& policy : common.policies.empty()
                                               ? std::vector<std::string>{"round_robin", "prefix"}
                                               : common.policies) {
            run.policy = policy;
            cells.push_back(CellOf(run, common));
          }
        }
      }
    }
  }
  return cells;
}

void AddSimStormOptions(CLI::App& command, SimStormOptions& o) {
  command.add_option("--guard", o.guards,
                     "Storm: what meets clients that give up: none, cancel, attach; "
                     "default: all");
}

}  // namespace hidane::cli
