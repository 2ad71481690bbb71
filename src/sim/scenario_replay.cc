#include "sim/scenario_replay.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "sim/bounds.h"
#include "sim/event_queue.h"
#include "sim/gpu_mix.h"
#include "sim/retrying_clients.h"

namespace hidane::sim {
namespace {

constexpr Duration kDown = std::chrono::seconds(30);  // of a replica that is lost

std::unique_ptr<Workload> ClientsOf(const ReplayRun& run) {
  std::unique_ptr<Workload> clients = std::make_unique<TraceReplay>(run.trace, run.replay);
  if (!run.sdk_clients) return clients;
  return std::make_unique<RetryingClients>(std::move(clients),
                                           RetryOptions{.seed = run.replay.seed});
}

/// `8x0.5M`: replicas and the KV memory of each; `12x0.4M+4x0.945M`.
std::string FleetName(const Setup& setup) {
  constexpr double kMillion = 1e6;
  std::map<uint64_t, uint32_t> replicas;  // by memory
  for (const EngineOptions& engine : setup.engines) ++replicas[engine.gpu.kv_capacity_tokens];
  std::string name;
  for (const auto& [kv, count] : replicas) {
    const double millions = static_cast<double>(kv) / kMillion;
    name += fmt::format("{}{}x{:.3g}M", name.empty() ? "" : "+", count, millions);
  }
  return name;
}

}  // namespace

Result<Setup> ReplaySetup(const ReplayRun& run) {
  if (run.replicas == 0) return Fail(Code::kInvalidArgument, "0 replicas", "replicas");
  HIDANE_TRY(std::vector<GpuSetup> gpus, FindGpuSetups(run.gpu, run.replicas));
  for (GpuSetup& gpu : gpus) {
    if (run.kv_tokens > 0) gpu.kv_capacity_tokens = run.kv_tokens;
  }
  Setup setup;
  setup.engines = EnginesOn(gpus, {.gpu = {}, .eviction = run.eviction});
  setup.policy = run.policy;
  setup.gateways = run.gateways;
  setup.deltas = run.deltas;
  setup.params = run.params;
  setup.working_set = run.working_set;
  setup.session_ids = run.session_ids;
  if (run.churn_every > Duration{}) setup.plan.churn = {.every = run.churn_every, .down = kDown};
  return setup;
}

Result<Run> SimulateReplay(const ReplayRun& run, const Setup& setup, double bound) {
  const auto clients = ClientsOf(run);
  HIDANE_TRY(Run result, Simulate(setup, *clients));
  result.row.scenario = run.scenario;
  result.row.fleet = FleetName(setup);
  result.row.phase = run.phase;
  // Admission changes the order of requests: the run's own bound is of the order that it let in.
  if (!run.working_set) result.row.hit_ratio_bound = bound;
  return result;
}

Result<double> ReplayBound(const ReplayRun& run) {
  HIDANE_TRY(const Setup setup, ReplaySetup(run));
  TraceReplay clients(run.trace, run.replay);
  HitBounds bounds;
  EventQueue<std::shared_ptr<Request>> later;
  const auto plan = [&](std::optional<Request> request) {
    if (!request) return false;
    const TimePoint at = request->arrival;
    later.Push(at, std::make_shared<Request>(*std::move(request)));
    return true;
  };
  while (plan(clients.Next())) {
  }
  while (!later.empty()) {
    const auto due = later.Pop();
    bounds.Add(*due.event);
    plan(clients.After({.request = *due.event}, due.at));
  }
  uint64_t kv = 0;
  for (const EngineOptions& engine : setup.engines) kv += engine.gpu.kv_capacity_tokens;
  return bounds.Within(kv);
}

}  // namespace hidane::sim
