#include "sim/matrix.h"

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string_view>

namespace hidane::sim {
namespace {

constexpr uint64_t kRequests = 1'800;
constexpr uint64_t kFullRequests = 4'800;
constexpr uint32_t kManyGateways[] = {2, 4, 16};
constexpr Deltas kAllDeltas[] = {Deltas::kOn, Deltas::kLate, Deltas::kOff};

/// Collects cells: each call adds one for each policy it names that is wanted.
class Builder {
 public:
  explicit Builder(const MatrixOptions& options) : options_(options), params_(options.params) {}

  Status Add(std::string_view fleet, SeedPhase phase, std::span<const std::string_view> policies,
             uint32_t gateways = 1, Deltas deltas = Deltas::kOn) {
    SeedRun run;
    run.phase = phase;
    run.gpu = options_.gpu;
    run.params = params_;
    run.cache_tails = options_.cache_tails;
    run.eviction = options_.eviction;
    run.gateways = gateways;
    run.deltas = deltas;
    HIDANE_TRY(run.fleet, ParseSeedFleet(fleet));
    run.requests = options_.requests > 0 ? options_.requests
                   : options_.full       ? kFullRequests
                                         : kRequests;
    for (const std::string_view policy : policies) {
      if (!Wanted(policy) || (policy == "oracle" && gateways > 1)) continue;
      run.policy = policy;
      Cell& cell = cells_.emplace_back();
      for (uint32_t i = 0; i < (options_.full ? kFullSeeds : 1); ++i) {
        run.seed = options_.seed + i;
        cell.push_back(run);
      }
    }
    return {};
  }
  Status Add(std::string_view fleet, SeedPhase phase,
             std::initializer_list<std::string_view> policies, uint32_t gateways = 1,
             Deltas deltas = Deltas::kOn) {
    return Add(fleet, phase, std::span(policies.begin(), policies.size()), gateways, deltas);
  }
  /// As `prefix` alone, where the gateways keep prefixes warm.
  Status AddKeptWarm(std::string_view fleet, uint32_t gateways) {
    params_.keep_warm = true;
    const Status added = Add(fleet, SeedPhase::kSustained, {"prefix"}, gateways);
    params_ = options_.params;
    return added;
  }
  std::vector<Cell> Take() { return std::move(cells_); }

 private:
  bool Wanted(std::string_view policy) const {
    const auto& wanted = options_.policies;
    return wanted.empty() || std::ranges::find(wanted, policy) != wanted.end();
  }

  const MatrixOptions& options_;
  routing::Params params_;
  std::vector<Cell> cells_;
};

Status AddGateways(Builder& matrix, std::string_view fleet) {
  for (const uint32_t gateways : kManyGateways) {
    for (const Deltas deltas : kAllDeltas) {
      HIDANE_CHECK_OK(matrix.Add(fleet, SeedPhase::kSustained, {"prefix"}, gateways, deltas));
    }
  }
  return matrix.Add(fleet, SeedPhase::kSustained, {"cost"}, 4, Deltas::kOff);
}

Status AddKeptWarm(Builder& matrix, std::span<const std::string_view> fleets) {
  for (const std::string_view fleet : fleets) {
    for (const uint32_t gateways : {1u, 4u}) {
      HIDANE_CHECK_OK(matrix.AddKeptWarm(fleet, gateways));
    }
  }
  return {};
}

// Every policy where fleets differ, bursts for all; where the fleet changes, those that differ in
// kind; several gateways for the policy that shares a table.
Status AddStandard(Builder& matrix) {
  const auto all = SimPolicies();
  const std::string_view roomy = "16x80";
  HIDANE_CHECK_OK(matrix.Add(roomy, SeedPhase::kColdBurst, all));
  HIDANE_CHECK_OK(matrix.Add(roomy, SeedPhase::kWarmBurst, all));
  for (const std::string_view fleet : SeedFleets()) {
    HIDANE_CHECK_OK(matrix.Add(fleet, SeedPhase::kSustained, all));
  }
  HIDANE_CHECK_OK(matrix.Add(roomy, SeedPhase::kSingleTenant, {"round_robin", "prefix"}));
  for (const SeedPhase phase : {SeedPhase::kChurn, SeedPhase::kReplicaLoss}) {
    HIDANE_CHECK_OK(matrix.Add(roomy, phase, {"round_robin", "fixed_hash", "cost", "prefix"}));
  }
  HIDANE_CHECK_OK(matrix.Add(roomy, SeedPhase::kRollingUpgrade, {"fixed_hash", "prefix"}));
  HIDANE_CHECK_OK(AddGateways(matrix, roomy));
  HIDANE_CHECK_OK(AddGateways(matrix, "8x100"));
  constexpr std::string_view kTight[] = {"8x100", "16x200-zipf0.8"};
  return AddKeptWarm(matrix, kTight);
}

Status AddFull(Builder& matrix) {
  for (const std::string_view fleet : SeedFleets()) {
    for (const SeedPhase phase : SeedPhases()) {
      HIDANE_CHECK_OK(matrix.Add(fleet, phase, SimPolicies()));
    }
    HIDANE_CHECK_OK(AddGateways(matrix, fleet));
  }
  return AddKeptWarm(matrix, SeedFleets());
}

template <class T>
std::vector<T> OrDefault(std::vector<T> values, T otherwise) {
  if (values.empty()) values.push_back(std::move(otherwise));
  return values;
}

Status AddProduct(const MatrixOptions& options, Builder& matrix) {
  for (const std::string& fleet : OrDefault<std::string>(options.fleets, "16x80")) {
    for (const std::string& name : OrDefault<std::string>(options.phases, "sustained")) {
      HIDANE_TRY(const SeedPhase phase, ParseSeedPhase(name));
      for (const uint32_t gateways : OrDefault(options.gateways, 1u)) {
        HIDANE_CHECK_OK(matrix.Add(fleet, phase, SimPolicies(), gateways,
                                   options.deltas.value_or(Deltas::kOn)));
      }
    }
  }
  return {};
}

}  // namespace

Result<std::vector<Cell>> SeedMatrix(const MatrixOptions& options) {
  const auto known = SimPolicies();
  for (const std::string& policy : options.policies) {
    if (std::ranges::find(known, policy) != known.end()) continue;
    return Fail(Code::kInvalidArgument, "no policy " + policy, "policy");
  }
  const bool chosen = !options.fleets.empty() || !options.phases.empty() ||
                      !options.gateways.empty() || options.deltas.has_value();
  Builder matrix(options);
  HIDANE_CHECK_OK(chosen         ? AddProduct(options, matrix)
                  : options.full ? AddFull(matrix)
                                 : AddStandard(matrix));
  return matrix.Take();
}

}  // namespace hidane::sim
