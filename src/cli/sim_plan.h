#pragma once
#include <string>

#include "cli/command.h"
#include "cli/sim_trace.h"
#include "sim/planner.h"

namespace hidane::cli {

/// What `hidane sim --plan` is told.
struct PlanOptions {
  bool wanted = false;
  sim::PlanDemand demand;
  std::string model;
  std::string slo_ttft = "1s";
};
void AddPlanOptions(CLI::App& command, PlanOptions& options);

/// `1s`, `0.5s`, `300ms`; kInvalidArgument otherwise, or where it isn't over 0 and at most a day.
Result<Duration> ParseDuration(std::string_view text);

/// Finds what each policy needs, prints the table and the answer; JSON to `json` unless empty.
Exit RunPlan(const PlanOptions& options, const CommonOptions& common, const std::string& json);

}  // namespace hidane::cli
