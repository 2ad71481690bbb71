#include "sim/planner.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/assert.h"
#include "sim/simulation.h"
#include "sim/tenant_loop.h"

namespace hidane::sim {
namespace {

constexpr double kSustainedShare = 0.9;  // of the rate that must be served while it arrives
// More requests under way than this means that they pile up.
constexpr double kSlowTokenSeconds = 0.1;
constexpr double kGraceSeconds = 10;

TenantLoopOptions WorkloadOf(const PlanDemand& demand, uint32_t replicas, uint64_t seed) {
  // Long enough that the caches are what they will be: every tenant was there, every replica has
  // seen more prompts than it can hold.
  const uint64_t warm_up = std::max<uint64_t>({1'200, 4ull * demand.tenants, 40ull * replicas});
  const auto half = [](uint32_t mean) { return std::max(1u, mean / 2); };
  return {.tenants = demand.tenants,
          .zipf_s = demand.zipf_s,
          .static_tokens = demand.static_tokens,
          .own_tokens_min = half(demand.own_tokens),
          .own_tokens_max = demand.own_tokens + demand.own_tokens / 2,
          .output_tokens_min = half(demand.output_tokens),
          .output_tokens_max = demand.output_tokens + demand.output_tokens / 2,
          .seed = seed,
          .rate_per_s = demand.rate_per_s,
          .requests = warm_up + kPlanRequests,
          .uncounted = warm_up};
}

double MeanHeld(const Series& series) {
  double sum = 0, count = 0;
  for (const Series::Point& point : series.points) {
    for (const float share : point.kv_held) sum += share;
    count += static_cast<double>(point.kv_held.size());
  }
  return count > 0 ? sum / count : 0;
}

uint32_t Middle(uint32_t low, uint32_t high) {
  return low + (high - low) / 2;
}

}  // namespace

Status Check(const PlanDemand& demand, const GpuSetup& gpu) {
  const uint64_t longest = uint64_t{demand.static_tokens} * 106 / 100 +
                           uint64_t{demand.own_tokens} * 3 / 2 +
                           uint64_t{demand.output_tokens} * 3 / 2;
  if (longest <= gpu.kv_capacity_tokens) return {};
  return Fail(Code::kInvalidArgument,
              "a request of " + std::to_string(longest) + " tokens does not fit the " +
                  std::to_string(gpu.kv_capacity_tokens) + " KV tokens of " + std::string(gpu.name),
              "static-tokens");
}

Result<PlanTrial> TryReplicas(const PlanDemand& demand, const GpuSetup& gpu,
                              std::string_view policy, uint32_t replicas, uint64_t seed,
                              const std::function<bool()>& go_on) {
  const TenantLoopOptions options = WorkloadOf(demand, replicas, seed);
  TenantLoop workload(options);
  const double under_way_most =
      demand.rate_per_s *
      (Seconds(demand.slo_ttft) + demand.output_tokens * kSlowTokenSeconds + kGraceSeconds);
  bool cancelled = false, piled_up = false;
  Setup setup;
  setup.engines.assign(replicas, {.gpu = gpu});
  setup.policy = policy;
  setup.params = demand.params;
  setup.series_step = std::chrono::seconds(1);
  setup.on_second = [&](TimePoint, uint64_t ended) {
    cancelled = !go_on();
    piled_up =
        workload.sent() > options.uncounted &&
        static_cast<double>(workload.sent() - std::min(ended, workload.sent())) > under_way_most;
    return !cancelled && !piled_up;
  };
  HIDANE_TRY(const Run run, Simulate(setup, workload));
  if (cancelled) return Fail(Code::kCancelled, "stopped");
  PlanTrial trial{.replicas = replicas,
                  .row = run.row,
                  .kv_held = MeanHeld(run.series),
                  .events = run.events,
                  .steps = run.steps};
  trial.sustained = !piled_up && run.row.requests_per_s >= kSustainedShare * demand.rate_per_s;
  trial.met =
      trial.sustained && run.row.errors == 0 && run.row.ttft_p99_s <= Seconds(demand.slo_ttft);
  return trial;
}

uint32_t ReplicasAtLeast(const PlanDemand& demand, const GpuSetup& gpu) {
  const double busy =
      demand.rate_per_s *
      StepModel(gpu).TokenSeconds(demand.static_tokens, demand.static_tokens + demand.own_tokens);
  return std::max(1u, static_cast<uint32_t>(std::ceil(busy)));
}

Result<std::optional<PlanTrial>> LeastReplicas(uint32_t start, uint32_t most, const Probe& probe,
                                               const Enough& enough) {
  HIDANE_ASSERT(start >= 1 && start <= most);
  uint32_t low = 0;  // not enough
  std::optional<PlanTrial> best;
  uint32_t at = start;
  for (uint32_t step = 1;; step *= 2) {
    HIDANE_TRY(const PlanTrial trial, probe(at));
    if (enough(trial)) {
      best = trial;
      if (low > 0 || at == 1) break;  // enclosed
      at = at > step ? at - step : 1;
    } else {
      low = std::max(low, at);
      if (best || at == most) break;
      at = most - at > step ? at + step : most;
    }
  }
  while (best && best->replicas - low > 1) {
    HIDANE_TRY(PlanTrial trial, probe(Middle(low, best->replicas)));
    enough(trial) ? (void)(best = trial) : (void)(low = trial.replicas);
  }
  return best;
}

Result<PlanRow> PlanPolicy(std::string policy, uint32_t start, uint32_t most, const Probe& probe) {
  std::map<uint32_t, PlanTrial> known;
  const Probe once = [&](uint32_t replicas) -> Result<PlanTrial> {
    if (const auto at = known.find(replicas); at != known.end()) return at->second;
    HIDANE_TRY(const PlanTrial trial, probe(replicas));
    known.emplace(replicas, trial);
    return trial;
  };
  PlanRow row{.policy = std::move(policy), .least = {}, .sustains = {}};
  HIDANE_TRY(row.least,
             LeastReplicas(start, most, once, [](const PlanTrial& trial) { return trial.met; }));
  if (row.least) return row;
  HIDANE_TRY(row.sustains, LeastReplicas(start, most, once,
                                         [](const PlanTrial& trial) { return trial.sustained; }));
  return row;
}

}  // namespace hidane::sim
