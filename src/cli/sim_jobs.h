#pragma once
#include <functional>
#include <string>
#include <vector>

#include "sim/report.h"
#include "sim/row.h"
#include "sim/simulation.h"

namespace hidane::cli {

/// What a run is told by whoever waits for it; goes into its sim::Setup.
struct SimWatch {
  const Clock* wall = nullptr;
  std::function<bool(TimePoint, uint64_t)> on_second;
  Duration series_step{};

  void Attach(sim::Setup& setup) const {
    setup.wall = wall;
    setup.on_second = on_second;
    setup.series_step = series_step;
  }
};

/// One run, not yet run.
struct SimJob {
  std::string label;  ///< for the progress line
  std::function<Result<sim::Run>(const SimWatch&)> run;
};
/// The runs of one row of the table: the same but for their seeds.
using SimCell = std::vector<SimJob>;

/// What running it all has cost.
struct SimEffort {
  uint64_t runs = 0, events = 0, steps = 0;
  double wall_s = 0;
};

/// The `meta` object of a result document (contracts section 4).
std::string SimMeta(uint64_t seed, const SimEffort& effort);

/// Runs all, one row a cell, with a progress line; each is added to `report` unless that is
/// nullptr. kCancelled: the user stopped it.
Result<std::vector<sim::Summary>> RunJobs(const std::vector<SimCell>& cells, SimEffort& effort,
                                          sim::HtmlReport* report = nullptr);

}  // namespace hidane::cli
