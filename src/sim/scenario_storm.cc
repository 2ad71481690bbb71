#include "sim/scenario_storm.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "sim/gpu_mix.h"

namespace hidane::sim {
namespace {

constexpr double kLoad = 0.7, kSurge = 5;  // of what the fleet can serve
constexpr size_t kCountedFrom = 30, kSurgeAt = 60, kSurgeUntil = 90, kUntil = 210;  // seconds
constexpr size_t kSettled = kSurgeUntil + 10;  // twice the clients' patience
constexpr uint64_t kNoBound = 1'000'000'000;
constexpr Duration kStep = std::chrono::seconds(1);

constexpr StormGuard kGuards[] = {StormGuard::kNone, StormGuard::kCancel, StormGuard::kAttach};

OnLeave OnLeaveOf(StormGuard guard) {
  switch (guard) {
    case StormGuard::kNone:
      return OnLeave::kRunOn;
    case StormGuard::kCancel:
      return OnLeave::kCancel;
    case StormGuard::kAttach:
      return OnLeave::kAttach;
  }
  return OnLeave::kCancel;
}

void FillStorm(const RetryingClients& clients, Row& row) {
  constexpr double kBack = 0.95;
  const auto rate = [&](size_t from, size_t to) {
    return static_cast<double>(clients.AskedIn(from, to).answered) / static_cast<double>(to - from);
  };
  row.surge_rps = rate(kSurgeAt, kSurgeUntil);
  row.after_rps = rate(kSettled, kUntil);
  row.answered_share = clients.AskedIn(0, kUntil).answered_share();
  row.recovery_s = SecondsUntilBack(kSurgeUntil, kUntil, [&](size_t from, size_t to) {
    return clients.AskedIn(from, to).answered_share() >= kBack;
  });
}

}  // namespace

std::string_view Name(StormGuard guard) {
  switch (guard) {
    case StormGuard::kNone:
      return "none";
    case StormGuard::kCancel:
      return "cancel";
    case StormGuard::kAttach:
      return "attach";
  }
  return "";
}

std::span<const StormGuard> StormGuards() {
  return kGuards;
}

Result<StormGuard> ParseStormGuard(std::string_view name) {
  const auto* const at =
      std::ranges::find(kGuards, name, [](StormGuard guard) { return Name(guard); });
  if (at != std::end(kGuards)) return *at;
  return Fail(Code::kInvalidArgument,
              "no guard \"" + std::string(name) + "\": none, cancel, attach", "guard");
}

TenantLoopOptions StormWorkload(const StormRun& run) {
  return {.tenants = run.fleet.tenants,
          .zipf_s = run.fleet.zipf_s,
          .servegen = run.fleet.servegen,
          .seed = run.seed,
          .rate_per_s = kLoad * run.capacity_per_replica * run.fleet.replicas,
          .surge = kSurge / kLoad,
          .surge_at = kSurgeAt * kStep,
          .surge_until = kSurgeUntil * kStep,
          .requests = kNoBound,
          .retries = false,
          .uncounted = run.fleet.tenants,
          .counted_from = kCountedFrom * kStep,
          .until = kUntil * kStep};
}

Result<Setup> StormSetup(const StormRun& run) {
  HIDANE_TRY(const std::vector<GpuSetup> gpus, FindGpuSetups(run.gpu, run.fleet.replicas));
  Setup setup;
  setup.engines = EnginesOn(gpus, {});
  setup.policy = run.policy;
  setup.gateways = run.gateways;
  setup.deltas = run.deltas;
  setup.params = run.params;
  setup.working_set = run.working_set;
  setup.on_leave = OnLeaveOf(run.guard);
  return setup;
}

Result<Run> SimulateStorm(const StormRun& run, const Setup& setup) {
  RetryingClients clients(std::make_unique<TenantLoop>(StormWorkload(run)), {.seed = run.seed});
  HIDANE_TRY(Run result, Simulate(setup, clients));
  Row& row = result.row;
  row.scenario = row.phase = "storm";
  row.fleet = run.fleet.name;
  row.guard = Name(run.guard);
  FillStorm(clients, row);
  row.sends_per_request =
      static_cast<double>(result.sent) / static_cast<double>(clients.AskedIn(0, kUntil).requests);
  return result;
}

}  // namespace hidane::sim
