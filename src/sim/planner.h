#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "routing/params.h"
#include "sim/gpu.h"
#include "sim/row.h"

namespace hidane::sim {

/// What a cluster must serve, and how well.
struct PlanDemand {
  uint32_t tenants = 80;
  double zipf_s = 0;  ///< popularity of tenants; 0: uniform
  /// Tokens on average: of a tenant's tools and system (+- 6 %), of a request's own text and its
  /// answer (+- 50 %).
  uint32_t static_tokens = 27'000, own_tokens = 1'000, output_tokens = 120;
  double rate_per_s = 30;  ///< Poisson arrivals
  Duration slo_ttft = std::chrono::seconds(1);
  routing::Params params{};  ///< of the gateways
};
/// kInvalidArgument where a request would not fit a replica's KV memory.
Status Check(const PlanDemand& demand, const GpuSetup& gpu);

/// How a number of replicas did.
struct PlanTrial {
  uint32_t replicas = 0;
  bool sustained = false;  ///< the rate: requests under way do not pile up
  bool met = false;        ///< that, without errors, and TTFT p99 within the SLO
  Row row{};               ///< of the requests after the warm-up, as far as it went
  double kv_held = 0;      ///< mean share of the fleet's KV memory that running requests hold
  uint64_t events = 0, steps = 0;  ///< what it cost
};

/// Simulates `replicas` replicas under `policy`: a warm-up, then kPlanRequests requests. Ends early
/// when they pile up. `go_on` is asked every virtual second; false: kCancelled.
Result<PlanTrial> TryReplicas(const PlanDemand& demand, const GpuSetup& gpu,
                              std::string_view policy, uint32_t replicas, uint64_t seed,
                              const std::function<bool()>& go_on);
inline constexpr uint64_t kPlanRequests = 2'000;

/// Replicas below which no policy serves the demand: own texts alone fill their time. At least 1.
uint32_t ReplicasAtLeast(const PlanDemand& demand, const GpuSetup& gpu);

using Probe = std::function<Result<PlanTrial>(uint32_t replicas)>;
using Enough = std::function<bool(const PlanTrial&)>;
/// The trial with the fewest replicas in [1, most] that is `enough`, by doubling steps from `start`
/// and bisection; nullopt: not even `most` is. It takes "more replicas do no worse" for granted: at
/// least, one replica fewer is not enough. Probes a number at most once. REQUIRES: 1 <= start <=
/// most.
Result<std::optional<PlanTrial>> LeastReplicas(uint32_t start, uint32_t most, const Probe& probe,
                                               const Enough& enough);

/// What a policy needs.
struct PlanRow {
  std::string policy;
  std::optional<PlanTrial> least;  ///< that meets the SLO; nullopt: not with `most` replicas
  /// Only where `least` is not: that sustains the rate, whatever TTFT is.
  std::optional<PlanTrial> sustains;
};
Result<PlanRow> PlanPolicy(std::string policy, uint32_t start, uint32_t most, const Probe& probe);

}  // namespace hidane::sim
