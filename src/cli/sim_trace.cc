#include "cli/sim_trace.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <limits>
#include <memory>
#include <utility>

#include "sim/scenario_agents.h"
#include "sim/trace_parse.h"
#include "sim/trace_stats.h"

namespace hidane::cli {
namespace {

/// The file's name without its folder and its endings.
std::string TitleOf(const std::string& file) {
  const std::string name = std::filesystem::path(file).filename().string();
  return name.substr(0, name.find('.'));
}

/// Computed when the first run of it ends: all policies share it.
class LazyBound {
 public:
  explicit LazyBound(sim::ReplayRun run) : run_(std::move(run)) {}
  Result<double> Get() {
    if (!bound_) {
      HIDANE_TRY(bound_, sim::ReplayBound(run_));
    }
    return *bound_;
  }

 private:
  sim::ReplayRun run_;
  std::optional<double> bound_;
};

SimJob MakeJob(const sim::ReplayRun& run, std::shared_ptr<LazyBound> bound) {
  return {fmt::format("{} {} {}", run.phase, run.replicas, run.policy),
          [run, bound = std::move(bound)](const SimWatch& watch) -> Result<sim::Run> {
            HIDANE_TRY(sim::Setup setup, ReplaySetup(run));
            watch.Attach(setup);
            HIDANE_TRY(const double hit_bound, bound->Get());
            return SimulateReplay(run, setup, hit_bound);
          }};
}

/// `base` in all the kinds that are asked for: one a row of the table.
std::vector<sim::ReplayRun> KindsOf(const sim::ReplayRun& base, const CommonOptions& common) {
  std::vector<std::string> policies = common.policies;
  if (policies.empty()) policies.assign(sim::SimPolicies().begin(), sim::SimPolicies().end());
  std::vector<sim::ReplayRun> kinds;
  for (const uint32_t gateways : OrOne(common.gateways, 1u)) {
    for (const auto& working_set : AdmissionsOf(common)) {
      for (const std::string& policy : policies) {
        if (policy == "oracle" && gateways > 1) continue;
        sim::ReplayRun& run = kinds.emplace_back(base);
        run.policy = policy;
        run.gateways = gateways;
        run.working_set = working_set;
      }
    }
  }
  return kinds;
}

/// Appends `runs`, the same but for their seeds, in all kinds.
void AddCells(const std::vector<sim::ReplayRun>& runs, const CommonOptions& common,
              std::vector<SimCell>& cells) {
  std::vector<std::shared_ptr<LazyBound>> bounds;
  for (const sim::ReplayRun& run : runs) bounds.push_back(std::make_shared<LazyBound>(run));
  for (const sim::ReplayRun& kind : KindsOf(runs.front(), common)) {
    SimCell& cell = cells.emplace_back();
    for (size_t i = 0; i < runs.size(); ++i) {
      sim::ReplayRun run = kind;
      run.trace = runs[i].trace;
      run.replay = runs[i].replay;
      cell.push_back(MakeJob(run, bounds[i]));
    }
  }
}

/// `run` once for each seed, with what every scenario is told.
std::vector<sim::ReplayRun> EachSeed(sim::ReplayRun run, const CommonOptions& common) {
  run.gpu = common.gpu;
  run.deltas = common.deltas;
  run.session_ids = common.session_ids;
  run.params = common.params;
  run.eviction = common.eviction;
  std::vector<sim::ReplayRun> runs(common.seeds, run);
  for (uint32_t i = 0; i < common.seeds; ++i) runs[i].replay.seed = common.seed + i;
  return runs;
}

}  // namespace

std::vector<std::optional<admission::Params>> AdmissionsOf(const CommonOptions& common) {
  std::vector<std::optional<admission::Params>> all;
  for (const std::string& working_set : OrOne<std::string>(common.working_sets, "off")) {
    if (working_set == "off") {
      all.push_back(std::nullopt);
      continue;
    }
    for (const uint32_t quantum : common.quantums) {
      all.push_back(admission::Params{.quantum_turns = quantum});
    }
  }
  return all;
}

Result<std::vector<SimCell>> TraceCells(const TraceOptions& options, const CommonOptions& common) {
  HIDANE_TRY(sim::Trace trace, sim::ReadTrace(options.file));
  sim::ReplayRun run;
  run.trace = std::make_shared<const sim::Trace>(std::move(trace));
  run.replay = {.time_scale = options.time_scale,
                .overlay = options.overlay,
                .requests = common.requests,
                .sessions = options.sessions};
  if (options.think_max_s > 0) run.replay.think_max = FromSeconds(options.think_max_s);
  run.phase = TitleOf(options.file);
  run.sdk_clients = options.clients == "sdk";
  run.churn_every = FromSeconds(options.churn_s);
  std::vector<SimCell> cells;
  for (const uint32_t replicas : OrOne(options.replicas, 8u)) {
    for (const uint64_t kv : OrOne(options.kv_tokens, uint64_t{0})) {
      run.replicas = replicas;
      run.kv_tokens = kv;
      AddCells(EachSeed(run, common), common, cells);
    }
  }
  return cells;
}

Result<std::vector<SimCell>> AgentsCells(const TraceOptions& options,
                                         const std::vector<std::string>& phases,
                                         const CommonOptions& common) {
  std::vector<std::shared_ptr<const sim::Trace>> sessions;  // by seed
  std::optional<sim::Trace> recorded;
  if (!options.file.empty()) {
    HIDANE_TRY(recorded, sim::ReadTrace(options.file));
  }
  for (uint32_t i = 0; i < common.seeds; ++i) {
    const sim::AgentsOptions which{.seed = common.seed + i};
    sessions.push_back(std::make_shared<const sim::Trace>(recorded ? SampleAgents(*recorded, which)
                                                                   : GenerateAgents(which)));
  }
  std::vector<std::string> wanted = phases;
  if (wanted.empty()) {
    for (const sim::AgentsLoad& load : sim::AgentsLoads()) wanted.emplace_back(load.name);
  }
  std::vector<SimCell> cells;
  for (const uint32_t replicas : OrOne(options.replicas, sim::kAgentsReplicas)) {
    for (const std::string& name : wanted) {
      HIDANE_TRY(const sim::AgentsLoad load, sim::FindAgentsLoad(name));
      auto runs = EachSeed(AgentsRun(nullptr, load, replicas), common);
      for (size_t i = 0; i < runs.size(); ++i) {
        runs[i].trace = sessions[i];
        runs[i].sdk_clients = options.clients == "sdk";
        runs[i].churn_every = FromSeconds(options.churn_s);
      }
      AddCells(runs, common, cells);
    }
  }
  return cells;
}

Result<std::string> DescribeTrace(const TraceOptions& options) {
  HIDANE_TRY(const sim::Trace trace, sim::ReadTrace(options.file));
  return Describe(trace);
}

void AddTraceOptions(CLI::App& command, TraceOptions& o) {
  command
      .add_option("--trace", o.file,
                  "Replays a trace: Mooncake, AIPerf, Bailian, Claude Code, Azure or CSV, gzip "
                  "or plain")
      ->type_name("FILE");
  command.add_flag("--describe", o.describe, "Says what the trace holds and ends");
  command.add_option("--replicas", o.replicas, "Replicas that serve the trace")
      ->check(CLI::Range(1u, 10'000u));
  command.add_option("--kv-tokens", o.kv_tokens, "KV memory of a replica; default: the GPU's")
      ->check(CLI::Range(uint64_t{1'000}, uint64_t{100'000'000}));
  command.add_option("--overlay", o.overlay, "Copies of the trace, without common text")
      ->check(CLI::Range(1u, 10'000u));
  command.add_option("--time-scale", o.time_scale, "2: the trace in half its time")
      ->check(CLI::Range(1e-3, 1e6));
  command
      .add_option("--think-max", o.think_max_s,
                  "Think times of a trace's sessions are cut to so many seconds; default: as "
                  "recorded")
      ->check(CLI::Range(1.0, 1e6));
  command
      .add_option("--churn", o.churn_s,
                  "Traces and agents: every so many seconds another replica is lost, for 30 s")
      ->check(CLI::Range(1.0, 1e6));
  command.add_option("--sessions", o.sessions, "At a time, where a trace has no times")
      ->check(CLI::Range(1u, 1'000'000u));
  command
      .add_option("--clients", o.clients,
                  "sdk: they give up after 5 s without a byte and retry as OpenAI's SDKs do")
      ->check(CLI::IsMember({"patient", "sdk"}));
}

}  // namespace hidane::cli
