#include "sim/scenario_seed.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "sim/bounds.h"
#include "sim/gpu_mix.h"

namespace hidane::sim {
namespace {

constexpr uint32_t kClients = 100;
constexpr uint64_t kWarmUp = 1'200;
// Phases in which the fleet changes run by the clock, so that policies are compared over the same
// events however many requests they serve meanwhile.
constexpr uint32_t kFineBlocks = 16;  // where the ceiling is measured, none is lost to rounding
constexpr TimePoint kCountedFrom = std::chrono::seconds(30);
constexpr TimePoint kChangeAt = std::chrono::seconds(60);
constexpr Duration kDown = std::chrono::seconds(30);
constexpr Duration kUpgradeDown = std::chrono::seconds(5);
constexpr Duration kDrainMax = std::chrono::seconds(60);
constexpr TimePoint kLossUntil = std::chrono::seconds(180);
constexpr Duration kUpgradeEach = std::chrono::seconds(15);  // about what one replica takes
constexpr Duration kAfterwards = std::chrono::seconds(60);
constexpr TimePoint kWarmUntil = std::chrono::seconds(60);
constexpr TimePoint kBurstAt = std::chrono::seconds(120);
constexpr Duration kChurnEvery = std::chrono::seconds(2);
constexpr uint64_t kNoBound = 1'000'000'000;

constexpr std::string_view kFleets[] = {"16x80",       "8x100",        "8x112",
                                        "16x32-zipf1", "16x100-zipf1", "16x200-zipf0.8"};

struct NamedPhase {
  SeedPhase phase;
  std::string_view name;
};
constexpr NamedPhase kPhases[] = {
    {SeedPhase::kColdBurst, "cold_burst"},       {SeedPhase::kWarmBurst, "warm_burst"},
    {SeedPhase::kSustained, "sustained"},        {SeedPhase::kChurn, "churn"},
    {SeedPhase::kReplicaLoss, "replica_loss"},   {SeedPhase::kRollingUpgrade, "rolling_upgrade"},
    {SeedPhase::kSingleTenant, "single_tenant"},
};
constexpr auto kPhaseValues = [] {
  std::array<SeedPhase, std::size(kPhases)> values{};
  std::ranges::transform(kPhases, values.begin(), &NamedPhase::phase);
  return values;
}();

/// Reads a number off the front of `text`.
template <class T>
bool TakeNumber(std::string_view& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool Take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

void RunByTheClock(TenantLoopOptions& o, TimePoint until) {
  o.requests = kNoBound;
  o.uncounted = o.tenants;
  o.counted_from = kCountedFrom;
  o.until = until;
}

/// Seconds of the burst's first prefills, balanced over the fleet; of equal replicas only.
double BurstBound(const TenantLoopOptions& options, const Setup& setup) {
  if (!Uniform(setup.engines)) return kUnknown;
  TenantLoop workload(options);
  std::vector<Request> burst;
  while (auto request = workload.Next()) burst.push_back(*std::move(request));
  const EngineOptions& engine = setup.engines.front();
  return BoundColdBurst(burst, engine.gpu, static_cast<uint32_t>(setup.engines.size()),
                        engine.max_num_batched_tokens)
      .balanced_s;
}

}  // namespace

Result<SeedFleet> ParseSeedFleet(std::string_view name) {
  SeedFleet fleet{.name = std::string(name)};
  std::string_view rest = name;
  const bool counts =
      TakeNumber(rest, fleet.replicas) && Take(rest, "x") && TakeNumber(rest, fleet.tenants);
  fleet.servegen = Take(rest, "-servegen");
  const bool zipf =
      rest.empty() || (!fleet.servegen && Take(rest, "-zipf") && TakeNumber(rest, fleet.zipf_s));
  const bool in_range = fleet.replicas >= 1 && fleet.replicas <= 4'096 && fleet.tenants >= 1 &&
                        fleet.tenants <= 1'000'000 && fleet.zipf_s >= 0 && fleet.zipf_s <= 10;
  if (!counts || !zipf || !rest.empty() || !in_range) {
    return Fail(Code::kInvalidArgument,
                "fleet \"" + std::string(name) +
                    "\" is not REPLICASxTENANTS, with -zipfS or -servegen, such as 16x80",
                "fleet");
  }
  return fleet;
}

std::span<const std::string_view> SeedFleets() {
  return kFleets;
}

std::string_view Name(SeedPhase phase) {
  return std::ranges::find(kPhases, phase, &NamedPhase::phase)->name;
}

Result<SeedPhase> ParseSeedPhase(std::string_view name) {
  const auto* const at = std::ranges::find(kPhases, name, &NamedPhase::name);
  if (at != std::end(kPhases)) return at->phase;
  std::string known;
  for (const auto& phase : kPhases) known += (known.empty() ? "" : ", ") + std::string(phase.name);
  return Fail(Code::kInvalidArgument, "no phase \"" + std::string(name) + "\": " + known, "phase");
}

std::span<const SeedPhase> SeedPhases() {
  return kPhaseValues;
}

TenantLoopOptions SeedWorkload(const SeedRun& run) {
  TenantLoopOptions o{.tenants = run.fleet.tenants,
                      .zipf_s = run.fleet.zipf_s,
                      .servegen = run.fleet.servegen,
                      .seed = run.seed,
                      .concurrency = kClients,
                      .requests = kWarmUp + run.requests,
                      .uncounted = kWarmUp};
  switch (run.phase) {
    case SeedPhase::kColdBurst:
      o.requests = o.uncounted = 0;
      o.burst = kClients;
      break;
    case SeedPhase::kWarmBurst:
      o.requests = kWarmUp;
      o.until = kWarmUntil;
      o.burst = kClients;
      o.burst_at = kBurstAt;
      break;
    case SeedPhase::kSustained:
      break;
    case SeedPhase::kChurn:
      o.churn_every = kChurnEvery;
      break;
    case SeedPhase::kReplicaLoss:
      RunByTheClock(o, kLossUntil);
      break;
    case SeedPhase::kRollingUpgrade:
      RunByTheClock(o, kChangeAt + run.fleet.replicas * kUpgradeEach + kAfterwards);
      break;
    case SeedPhase::kSingleTenant:
      o.tenants = 1;
      o.static_spread = 0;
      break;
  }
  return o;
}

Result<Setup> SeedSetup(const SeedRun& run) {
  HIDANE_TRY(const std::vector<GpuSetup> gpus, FindGpuSetups(run.gpu, run.fleet.replicas));
  Setup setup;
  setup.engines =
      EnginesOn(gpus, {.gpu = {}, .cache_tails = run.cache_tails, .eviction = run.eviction});
  if (run.phase == SeedPhase::kSingleTenant) {
    for (EngineOptions& engine : setup.engines) engine.block_size = kFineBlocks;
  }
  setup.policy = run.policy;
  setup.gateways = run.gateways;
  setup.deltas = run.deltas;
  setup.params = run.params;
  if (run.phase == SeedPhase::kReplicaLoss) {
    setup.plan.losses.push_back({.worker = 0, .at = kChangeAt, .down = kDown});
  }
  if (run.phase == SeedPhase::kRollingUpgrade) {
    setup.plan.upgrade = {.at = kChangeAt, .down = kUpgradeDown, .drain_max = kDrainMax};
  }
  return setup;
}

Result<Run> SimulateSeed(const SeedRun& run, const Setup& setup) {
  const TenantLoopOptions options = SeedWorkload(run);
  TenantLoop workload(options);
  HIDANE_TRY(Run result, Simulate(setup, workload));
  if (run.phase == SeedPhase::kColdBurst) result.row.makespan_bound_s = BurstBound(options, setup);
  result.row.scenario = "seed";
  result.row.fleet = run.fleet.name;
  result.row.phase = Name(run.phase);
  return result;
}

}  // namespace hidane::sim
