#include "cli/sim_jobs.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/json_out.h"
#include "cli/command.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "load/report.h"

namespace hidane::cli {
namespace {

/// Shows how far the runs are; false when the user wants to stop.
class Progress {
 public:
  explicit Progress(uint64_t runs) : runs_(runs) {}
  bool Show(const SimJob& job, uint64_t done) {
    const std::string left =
        done == 0 ? "" : fmt::format(", {:.0f} s left", wall_s() / done * (runs_ - done));
    line_.Show(fmt::format("sim: {}/{} runs{}: {}", done, runs_, left, job.label));
    stopped_ = stopped_ || WaitForStop(std::chrono::milliseconds(0));
    return !stopped_;
  }
  double wall_s() const { return Seconds(SteadyClock().Now() - begun_); }

 private:
  uint64_t runs_;
  bool stopped_ = false;  // a signal is told once
  TimePoint begun_ = SteadyClock().Now();
  ProgressLine line_;
};

}  // namespace

std::string SimMeta(uint64_t seed, const SimEffort& effort) {
  JsonWriter w;
  w.BeginObject();
  for (const auto& [key, value] :
       load::MakeMeta({Version(), Commit()}, "sim", seed, CommandLine())) {
    key == "seed" ? w.Key(key).Raw(value) : w.Field(key, value);
  }
  w.Field("runs", effort.runs).Field("events", effort.events).Field("engine_steps", effort.steps);
  w.Field("wall_s", effort.wall_s).Field("events_per_s", effort.events / effort.wall_s);
  w.EndObject();
  return w.Take();
}

Result<std::vector<sim::Summary>> RunJobs(const std::vector<SimCell>& cells, SimEffort& effort,
                                          sim::HtmlReport* report) {
  uint64_t runs = 0;
  for (const SimCell& cell : cells) runs += cell.size();
  Progress progress(runs);
  std::vector<sim::Summary> summaries;
  for (const SimCell& cell : cells) {
    std::vector<sim::Row> rows;
    sim::Run first;
    for (const SimJob& job : cell) {
      const auto show = [&](TimePoint, uint64_t) { return progress.Show(job, effort.runs); };
      const bool drawn = report != nullptr && rows.empty();
      HIDANE_TRY(sim::Run result,
                 job.run({.wall = &SteadyClock(),
                          .on_second = show,
                          .series_step = drawn ? sim::HtmlReport::kSeriesStep : Duration{}}));
      if (!progress.Show(job, effort.runs)) return Fail(Code::kCancelled, "stopped");
      rows.push_back(result.row);
      ++effort.runs;
      effort.events += result.events;
      effort.steps += result.steps;
      if (drawn) first = std::move(result);
    }
    summaries.push_back(sim::Summarize(rows));
    if (report != nullptr) report->Add(summaries.back(), first);
  }
  effort.wall_s = progress.wall_s();
  return summaries;
}

}  // namespace hidane::cli
