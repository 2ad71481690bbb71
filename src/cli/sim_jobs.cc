#include "cli/sim_jobs.h"

#include <fmt/format.h>

#include <chrono>

#include "base/clock.h"
#include "cli/signals.h"
#include "cli/terminal.h"

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
    return !WaitForStop(std::chrono::milliseconds(0));
  }
  double wall_s() const { return Seconds(SteadyClock().Now() - begun_); }

 private:
  uint64_t runs_;
  TimePoint begun_ = SteadyClock().Now();
  ProgressLine line_;
};

}  // namespace

Result<std::vector<sim::Summary>> RunJobs(const std::vector<SimCell>& cells, SimEffort& effort) {
  uint64_t runs = 0;
  for (const SimCell& cell : cells) runs += cell.size();
  Progress progress(runs);
  std::vector<sim::Summary> summaries;
  for (const SimCell& cell : cells) {
    std::vector<sim::Row> rows;
    for (const SimJob& job : cell) {
      const SimWatch watch{.wall = &SteadyClock(), .on_second = [&](TimePoint, uint64_t) {
                             return progress.Show(job, effort.runs);
                           }};
      HIDANE_TRY(const sim::Run result, job.run(watch));
      if (!progress.Show(job, effort.runs)) return Fail(Code::kCancelled, "stopped");
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

}  // namespace hidane::cli
