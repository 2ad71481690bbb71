#include "cli/sim_demo.h"

#include <CLI/CLI.hpp>

#include "cli/demo.h"
#include "load/workload.h"

namespace hidane::cli {

std::vector<SimCell> DemoCells(const SimDemoOptions& options, const CommonOptions& common) {
  const DemoOptions real = DemoOf(options.static_tokens);
  sim::DemoRun run;
  run.cores = options.cores;
  run.clients = real.clients;
  run.tenants = real.tenants;
  run.static_tokens = real.static_tokens;
  run.own_tokens = load::OwnWords(real.own_tokens);
  run.output_tokens = real.output_tokens;
  run.warmup_rounds = options.warmup_rounds;
  run.params = common.params;
  run.seed = common.seed;
  run.order_seed = options.order_seed;
  run.kv_tokens = DemoKvTokens(real, run.engines);
  if (common.requests > 0) run.requests = common.requests;
  if (options.rates.size() == 3) {
    run.rates = {options.rates[0], options.rates[1], options.rates[2]};
  }
  std::vector<SimCell> cells;
  for (const std::string& policy : common.policies.empty()
                                       ? std::vector<std::string>{"round_robin", "prefix"}
                                       : common.policies) {
    run.policy = policy;
    cells.push_back({{"demo " + policy, [run](const SimWatch& watch) -> Result<sim::Run> {
                        HIDANE_TRY(sim::Setup setup, DemoSetup(run));
                        watch.Attach(setup);
                        return SimulateDemo(run, setup);
                      }}});
  }
  return cells;
}

void AddSimDemoOptions(CLI::App& command, SimDemoOptions& o) {
  command
      .add_option("--cpu-rates", o.rates,
                  "Demo: tokens/s of an engine alone, from model_bench --threads 1 --cpu: "
                  "prefill:512, decode:1, decode:4")
      ->expected(3);
  command
      .add_option("--demo-static-tokens", o.static_tokens,
                  "Demo: tool schemas of an agent; 0: what `hidane up` takes on this CPU")
      ->check(CLI::Range(0u, 8'000u));
  command.add_option("--cores", o.cores, "Demo: of the machine")->check(CLI::Range(1u, 1'024u));
  command.add_option("--warmup-rounds", o.warmup_rounds, "Demo: uncounted requests of each agent")
      ->check(CLI::Range(0u, 64u));
  command.add_option("--demo-order", o.order_seed,
                     "Demo: another race of the clients to the gateway, with the same requests");
}

}  // namespace hidane::cli
