#pragma once
#include <string>
#include <vector>

#include "load/report.h"
#include "load/runner.h"
#include "load/shares.h"

namespace hidane::load {

/// Model name of the target: the first of its /v1/models. kNotFound if it lists none.
Result<std::string> FirstModel(const Target& target);

/// A workload whose tenants' static prefixes have options.static_tokens tokens to within a few
/// percent, template included: sends two short requests and reads their usage. Keeps a first guess
/// of four bytes a token when the target counts no usage.
Result<Workload> Calibrate(const Target& target, WorkloadOptions options);

/// What is measured against.
struct Setup {
  Target target;
  std::vector<Target> engines = {};  ///< whose /metrics are read; empty = shares are estimated
  RunOptions run = {};
};

/// One request of each tenant, none of them counted, so that what follows measures a running
/// system. Round k begins with tenant k: under round_robin, n rounds bring every tenant to each of
/// n engines.
Result<std::vector<Outcome>> WarmUp(const Setup& setup, const Workload& workload, uint32_t round);

struct Measurement {
  Row row;
  std::vector<Outcome> outcomes;
};

/// Engine counters, run, engine counters: one row named `policy`. `warmup` is all that WarmUp
/// returned.
Result<Measurement> Measure(const Setup& setup, const Workload& workload,
                            std::span<const PlannedRequest> plan, std::string_view policy,
                            std::span<const Outcome> warmup);

}  // namespace hidane::load
