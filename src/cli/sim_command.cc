#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/json_out.h"
#include "cli/command.h"
#include "cli/signals.h"
#include "cli/sim_demo.h"
#include "cli/sim_jobs.h"
#include "cli/sim_plan.h"
#include "cli/sim_storm.h"
#include "cli/sim_table.h"
#include "cli/sim_trace.h"
#include "sim/matrix.h"
#include "sim/model_check.h"

namespace hidane::cli {
namespace {

struct Options {
  sim::MatrixOptions matrix;
  TraceOptions trace;
  SimDemoOptions demo;
  SimStormOptions storm;
  bool check_model = false;
  PlanOptions plan;
  std::string scenario = "seed", tails = "on", eviction = "lru", deltas, json, html;
  std::vector<std::string> working_sets;
  std::vector<uint32_t> quantums = {20};
  bool session_ids = false;
};

std::vector<SimCell> JobsOf(const std::vector<sim::Cell>& cells) {
  std::vector<SimCell> jobs;
  for (const sim::Cell& cell : cells) {
    SimCell& row = jobs.emplace_back();
    for (const sim::SeedRun& run : cell) {
      row.push_back({fmt::format("{} {} {}", run.fleet.name, Name(run.phase), run.policy),
                     [run](const SimWatch& watch) -> Result<sim::Run> {
                       HIDANE_TRY(sim::Setup setup, SeedSetup(run));
                       watch.Attach(setup);
                       return SimulateSeed(run, setup);
                     }});
    }
  }
  return jobs;
}

CommonOptions CommonOf(const Options& options) {
  const sim::MatrixOptions& matrix = options.matrix;
  return {.policies = matrix.policies,
          .gateways = matrix.gateways,
          .deltas = matrix.deltas.value_or(sim::Deltas::kOn),
          .gpu = matrix.gpu,
          .params = matrix.params,
          .eviction = matrix.eviction,
          .seed = matrix.seed,
          .seeds = matrix.full ? sim::kFullSeeds : 1,
          .requests = matrix.requests,
          .working_sets = options.working_sets,
          .quantums = options.quantums,
          .session_ids = options.session_ids};
}

Result<std::vector<SimCell>> CellsOf(const Options& options) {
  if (options.scenario == "agents") {
    CommonOptions common = CommonOf(options);
    // A run takes some ten seconds: a policy of each kind, unless all are asked for.
    if (common.policies.empty() && !options.matrix.full) {
      common.policies = {"prefix", "session", "cost", "round_robin"};
    }
    return AgentsCells(options.trace, options.matrix.phases, common);
  }
  if (!options.trace.file.empty()) return TraceCells(options.trace, CommonOf(options));
  if (options.scenario == "storm") {
    return StormCells(options.storm, options.matrix.fleets, CommonOf(options));
  }
  if (options.scenario == "demo") return DemoCells(options.demo, CommonOf(options));
  HIDANE_TRY(const std::vector<sim::Cell> cells, sim::SeedMatrix(options.matrix));
  return JobsOf(cells);
}

Exit DescribeOnly(const TraceOptions& trace) {
  const auto text = DescribeTrace(trace);
  if (!text) return Report(text.error());
  fmt::print("{}", *text);
  return Exit::kDone;
}

/// The step model beside measured points.
Exit CheckModelOnly() {
  const auto rows = sim::CheckModel(sim::MeasuredPoints());
  fmt::print("{}", ModelCheckTable(rows));
  return std::ranges::all_of(rows, &sim::ModelCheckRow::ok) ? Exit::kDone : Exit::kNotSo;
}

Status ReadDeltas(Options& options) {
  if (options.deltas.empty()) return {};
  for (const sim::Deltas deltas : {sim::Deltas::kOn, sim::Deltas::kLate, sim::Deltas::kOff}) {
    if (options.deltas == Name(deltas)) options.matrix.deltas = deltas;
  }
  if (options.matrix.deltas) return {};
  return Fail(Code::kInvalidArgument, "--deltas " + options.deltas + " is not on, late or off");
}

/// The seed scenario, the demo and the planner compare placement alone.
Status CheckWorkingSet(const Options& options) {
  const bool talks =
      options.scenario == "agents" || options.scenario == "storm" || !options.trace.file.empty();
  if (options.working_sets.empty() || (talks && !options.plan.wanted)) return {};
  return Fail(Code::kInvalidArgument,
              "--working-set is for --scenario agents, --scenario storm and --trace");
}

Status CheckKeepWarm(const Options& options) {
  const bool replays = options.scenario == "agents" || !options.trace.file.empty();
  if (!options.matrix.params.keep_warm) return {};
  if (replays || options.scenario == "seed" || options.plan.wanted) return {};
  return Fail(Code::kInvalidArgument,
              "--keep-warm is for --scenario seed, --scenario agents, --trace and --plan");
}

Exit Run(Options& options) {
  BlockStopSignals();
  options.matrix.cache_tails = options.tails == "on";
  options.matrix.eviction =
      options.eviction == "lru" ? sched::Eviction::kLru : sched::Eviction::kReuse;
  if (const auto read = ReadDeltas(options); !read) return Report(read.error());
  if (const auto check = CheckWorkingSet(options); !check) return Report(check.error());
  if (const auto check = CheckKeepWarm(options); !check) return Report(check.error());
  if (options.plan.wanted) {
    options.plan.demand.params = options.matrix.params;
    return RunPlan(options.plan, CommonOf(options), options.json);
  }
  if (options.trace.describe) return DescribeOnly(options.trace);
  if (options.check_model) return CheckModelOnly();
  const auto cells = CellsOf(options);
  if (!cells) return Report(cells.error(), "hidane sim --help lists the choices");
  SimEffort effort;
  sim::HtmlReport html(cells->size());
  const auto rows = RunJobs(*cells, effort, options.html.empty() ? nullptr : &html);
  if (!rows) return Report(rows.error());
  // With `--json -` stdout is the document's alone.
  std::FILE* const out = options.json == "-" ? stderr : stdout;
  fmt::print(out, "{}\n{} runs in {:.1f} s, {:.2f} M events/s\n", SimTable(*rows), effort.runs,
             effort.wall_s, effort.events / effort.wall_s / 1e6);
  const std::string meta = SimMeta(options.matrix.seed, effort);
  Status written;
  if (!options.json.empty()) written = WriteDocument(options.json, SimJson(meta, *rows));
  if (written && !options.html.empty()) written = WriteDocument(options.html, html.Page(meta));
  return written ? Exit::kDone
                 : Report(written.error(), "pass a file in a folder you may write to");
}

void AddOptions(CLI::App& command, Options& o) {
  auto& m = o.matrix;
  command.add_option("--scenario", o.scenario, "What is simulated")
      ->check(CLI::IsMember({"seed", "agents", "storm", "demo"}));
  command.add_option("--policy", m.policies, "Policies to compare; default: all");
  command.add_option("--fleet", m.fleets, "REPLICASxTENANTS, as it is or with -zipfS or -servegen");
  command.add_option("--phase", m.phases,
                     "cold_burst, warm_burst, sustained, churn, replica_loss, rolling_upgrade, "
                     "single_tenant; of agents: 40, 85, 120, 170");
  command.add_option("--gateways", m.gateways, "Numbers of gateways")->check(CLI::Range(1u, 64u));
  command.add_option("--deltas", o.deltas, "Gateways share placement: on, late (1 s), off");
  command
      .add_option("--working-set", o.working_sets,
                  "Working-set admission of agents, storms and traces: on, off; default: off")
      ->check(CLI::IsMember({"on", "off"}));
  command.add_option("--quantum", o.quantums,
                     "Turns until a place in the working set is yielded; 0: never");
  command.add_flag("--session-ids", o.session_ids,
                   "Admission knows conversations by their clients' word, not by prefix");
  command.add_flag("--keep-warm", m.params.keep_warm,
                   "Gateways refresh prefixes at home before the engines evict them");
  command
      .add_option("--spare-mark", m.params.spare_mark,
                  "prefix: assigned share of memory up to which prefixes get spare homes")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--tails", o.tails, "Prompts' ends stay in the engines' LRU caches: on, off")
      ->check(CLI::IsMember({"on", "off"}));
  command
      .add_option("--engine-eviction", o.eviction,
                  "What the engines' prefix caches let go of first: lru, as vLLM; reuse, as "
                  "hidane engine")
      ->check(CLI::IsMember({"lru", "reuse"}));
  command.add_option("--gpu", m.gpu,
                     "Model and GPUs of a replica, or of a mixed fleet: "
                     "12x8b-bf16-h100,4x8b-fp8-h200, over and over");
  command
      .add_option("--requests", m.requests,
                  "Counted requests of a closed loop, after 1,200 of warm-up; of a trace: so many")
      ->check(CLI::Range(uint64_t{10}, uint64_t{100'000'000}));
  command.add_flag("--check-model", o.check_model,
                   "Sets the step model beside measured points and ends; exit code 1: too far off");
  command.add_option("--seed", m.seed, "Same seed, same rows");
  command.add_flag("--full", m.full,
                   "All policies, fleets and phases, longer, 5 seeds: means with "
                   "95 % intervals");
  command.add_option("--json", o.json, "Also write the rows as JSON to this file; - is stdout");
  command.add_option("--html", o.html, "Also write a page with charts to this file")
      ->type_name("FILE");
}

}  // namespace

void AddSim(CLI::App& app, Exit& exit) {
  auto* command = app.add_subcommand(
      "sim", "A cluster in virtual time: what each policy would do, before buying GPUs");
  auto options = std::make_shared<Options>();
  command->option_defaults()->always_capture_default();
  AddOptions(*command, *options);
  AddTraceOptions(*command, options->trace);
  AddSimDemoOptions(*command, options->demo);
  AddSimStormOptions(*command, options->storm);
  AddPlanOptions(*command, options->plan);
  command->footer(
      "Without --fleet, --phase, --gateways or --deltas: the standard matrix.\n"
      "Examples:\n"
      "  hidane sim --scenario seed\n"
      "  hidane sim --scenario demo --cpu-rates 310 18 50\n"
      "  hidane sim --policy round_robin prefix --fleet 16x80 8x100 --phase sustained\n"
      "  hidane sim --fleet 16x80 --gpu 12x8b-bf16-h100,4x8b-fp8-h200\n"
      "  hidane sim --policy prefix --gateways 1 2 4 16 --deltas late --json rows.json\n"
      "  hidane sim --policy prefix --fleet 8x100 --keep-warm\n"
      "  hidane sim --phase sustained replica_loss --html report.html\n"
      "  hidane sim --plan --tenants 80 --static-tokens 27000 --rate 30 --gpu h100 "
      "--model 8b-bf16 --slo-ttft 1s\n"
      "  hidane sim --trace conversation_trace.jsonl.gz --replicas 8 64 --kv-tokens 500000\n"
      "  hidane sim --scenario agents --phase 85 120\n"
      "  hidane sim --scenario storm --policy prefix --guard cancel --spare-mark 0");
  command->callback([options, &exit] { exit = Run(*options); });
}

}  // namespace hidane::cli
