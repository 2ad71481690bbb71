#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/json_out.h"
#include "cli/command.h"
#include "cli/signals.h"
#include "cli/sim_table.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "load/report.h"
#include "sim/matrix.h"

namespace hidane::cli {
namespace {

struct Options {
  sim::MatrixOptions matrix;
  std::string scenario = "seed", deltas, json;
};

/// What running it all has cost.
struct Effort {
  uint64_t runs = 0, events = 0, steps = 0;
  double wall_s = 0;
};

std::string MetaJson(const Options& options, const Effort& effort) {
  JsonWriter w;
  w.BeginObject();
  for (const auto& [key, value] :
       load::MakeMeta({Version(), Commit()}, "sim", options.matrix.seed, CommandLine())) {
    key == "seed" ? w.Key(key).Raw(value) : w.Field(key, value);
  }
  w.Field("runs", effort.runs).Field("events", effort.events).Field("engine_steps", effort.steps);
  w.Field("wall_s", effort.wall_s).Field("events_per_s", effort.events / effort.wall_s);
  w.EndObject();
  return w.Take();
}

/// Shows how far the matrix is; false when the user wants to stop.
class MatrixProgress {
 public:
  explicit MatrixProgress(uint64_t runs) : runs_(runs) {}
  bool Show(const sim::SeedRun& run, uint64_t done) {
    const double wall_s = Seconds(SteadyClock().Now() - begun_);
    const std::string left =
        done == 0 ? "" : fmt::format(", {:.0f} s left", wall_s / done * (runs_ - done));
    line_.Show(fmt::format("sim: {}/{} runs{}: {} {} {}", done, runs_, left, run.fleet.name,
                           Name(run.phase), run.policy));
    return !WaitForStop(std::chrono::milliseconds(0));
  }
  double wall_s() const { return Seconds(SteadyClock().Now() - begun_); }

 private:
  uint64_t runs_;
  TimePoint begun_ = SteadyClock().Now();
  ProgressLine line_;
};

Result<std::vector<sim::Summary>> RunMatrix(const std::vector<sim::Cell>& cells, Effort& effort) {
  uint64_t runs = 0;
  for (const sim::Cell& cell : cells) runs += cell.size();
  MatrixProgress progress(runs);
  std::vector<sim::Summary> summaries;
  for (const sim::Cell& cell : cells) {
    std::vector<sim::Row> rows;
    for (const sim::SeedRun& run : cell) {
      HIDANE_TRY(sim::Setup setup, SeedSetup(run));
      setup.wall = &SteadyClock();
      setup.on_second = [&](TimePoint, uint64_t) { return progress.Show(run, effort.runs); };
      HIDANE_TRY(const sim::Run result, SimulateSeed(run, setup));
      if (!progress.Show(run, effort.runs)) return Fail(Code::kCancelled, "stopped");
      rows.push_back(result.row);
      ++effort.runs;
      effort.events += result.events;
      effort.steps += result.steps;
    }
    summaries.push_back(sim::Summarize(rows));
  }
  effort.wall_s = progress.wall_s();
  return summaries;
}

Status ReadDeltas(Options& options) {
  if (options.deltas.empty()) return {};
  for (const sim::Deltas deltas : {sim::Deltas::kOn, sim::Deltas::kLate, sim::Deltas::kOff}) {
    if (options.deltas == Name(deltas)) options.matrix.deltas = deltas;
  }
  if (options.matrix.deltas) return {};
  return Fail(Code::kInvalidArgument, "--deltas " + options.deltas + " is not on, late or off");
}

Exit Run(Options& options) {
  BlockStopSignals();
  if (const auto read = ReadDeltas(options); !read) return Report(read.error());
  const auto cells = sim::SeedMatrix(options.matrix);
  if (!cells) return Report(cells.error(), "hidane sim --help lists the choices");
  Effort effort;
  const auto rows = RunMatrix(*cells, effort);
  if (!rows) return Report(rows.error());
  // With `--json -` stdout is the document's alone.
  std::FILE* const out = options.json == "-" ? stderr : stdout;
  fmt::print(out, "{}\n{} runs in {:.1f} s, {:.2f} M events/s\n", SimTable(*rows), effort.runs,
             effort.wall_s, effort.events / effort.wall_s / 1e6);
  if (options.json.empty()) return Exit::kDone;
  const auto written = WriteDocument(options.json, SimJson(MetaJson(options, effort), *rows));
  return written ? Exit::kDone
                 : Report(written.error(), "pass a file in a folder you may write to");
}

void AddOptions(CLI::App& command, Options& o) {
  auto& m = o.matrix;
  command.add_option("--scenario", o.scenario, "What is simulated")->check(CLI::IsMember({"seed"}));
  command.add_option("--policy", m.policies, "Policies to compare; default: all");
  command.add_option("--fleet", m.fleets, "REPLICASxTENANTS, REPLICASxTENANTS-zipfS");
  command.add_option("--phase", m.phases,
                     "cold_burst, warm_burst, sustained, churn, replica_loss, rolling_upgrade, "
                     "single_tenant");
  command.add_option("--gateways", m.gateways, "Numbers of gateways")->check(CLI::Range(1u, 64u));
  command.add_option("--deltas", o.deltas, "Gateways share placement: on, late (1 s), off");
  command.add_option("--gpu", m.gpu, "Model and GPUs of a replica");
  command
      .add_option("--requests", m.requests,
                  "Counted requests of a closed loop, after 1,200 of warm-up")
      ->check(CLI::Range(uint64_t{10}, uint64_t{100'000'000}));
  command.add_option("--seed", m.seed, "Same seed, same rows");
  command.add_flag("--full", m.full,
                   "All policies, fleets and phases, longer, 5 seeds: means with "
                   "95 % intervals");
  command.add_option("--json", o.json, "Also write the rows as JSON to this file; - is stdout");
}

}  // namespace

void AddSim(CLI::App& app, Exit& exit) {
  auto* command = app.add_subcommand(
      "sim", "A cluster in virtual time: what each policy would do, before buying GPUs");
  auto options = std::make_shared<Options>();
  command->option_defaults()->always_capture_default();
  AddOptions(*command, *options);
  command->footer(
      "Without --fleet, --phase, --gateways or --deltas: the standard matrix.\n"
      "Examples:\n"
      "  hidane sim --scenario seed\n"
      "  hidane sim --policy round_robin prefix --fleet 16x80 8x100 --phase sustained\n"
      "  hidane sim --policy prefix --gateways 1 2 4 16 --deltas late --json rows.json");
  command->callback([options, &exit] { exit = Run(*options); });
}

}  // namespace hidane::cli
