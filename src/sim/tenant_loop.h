#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "sim/random.h"
#include "sim/workload.h"

namespace hidane::sim {

struct TenantLoopOptions {
  // Who and what.
  uint32_t tenants = 80;
  double zipf_s = 0;                ///< popularity; 0: uniform
  bool servegen = false;            ///< instead: ServeGenWeights of large models
  uint32_t static_tokens = 27'000;  ///< tools and system of a tenant, on average
  double static_spread = 0.06;      ///< uniform in +- so much of it, fixed for a tenant
  uint32_t own_tokens_min = 500, own_tokens_max = 1'500;
  uint32_t output_tokens_min = 60, output_tokens_max = 180;
  uint64_t seed = 1;

  // A closed loop.
  uint32_t concurrency = 100;
  /// > 0: an open loop instead, Poisson arrivals of so many requests a second. The first half of
  /// the uncounted ones come at half the rate, so that cold caches leave no line behind.
  double rate_per_s = 0;
  /// From `surge_at` to `surge_until` so many times the rate.
  double surge = 1;
  TimePoint surge_at{}, surge_until{};
  uint64_t requests = 0;     ///< sent in all, retries aside; 0: no loop
  bool retries = true;       ///< of requests that fail; false: clients do it, or nobody
  uint64_t uncounted = 0;    ///< the first of them; these begin with one of each tenant
  TimePoint counted_from{};  ///< and whatever is sent before this
  /// Nothing is sent later than this.
  TimePoint until = TimePoint::max();
  Duration churn_every{};  ///< so often a tenant leaves or a new one appears, in turn; 0: never

  // A burst.
  uint32_t burst = 0;  ///< counted requests at once
  TimePoint burst_at{};
};

/// Tenants that each begin every prompt with their own long static prefix: clients in a closed
/// loop, each drawing a tenant for every request, or arrivals at random, and a burst. The n-th
/// request of the loop is the same whatever the cluster does. A client whose request fails sends it
/// anew, at once and then after 0.5 s doubling, kAttemptsMax times in all.
class TenantLoop final : public Workload {
 public:
  static constexpr uint32_t kAttemptsMax = 5;

  explicit TenantLoop(const TenantLoopOptions& options);
  std::string_view name() const override { return "tenant loop"; }
  std::optional<Request> Next() override;
  std::optional<Request> After(const Finished& done, TimePoint now) override;
  uint64_t sent() const { return sent_; }  ///< by the loop, retries aside

 private:
  bool open() const { return options_.rate_per_s > 0; }
  TimePoint NextArrival();
  double RateAt(TimePoint at) const;
  std::optional<Request> Loop(TimePoint now);
  uint32_t DrawTenant(Rng& rng);
  Request Draw(uint32_t tenant, Rng& rng, TimePoint at);
  void Churn(TimePoint now);
  const prompt::Identity& StaticPrompt(uint32_t tenant);

  TenantLoopOptions options_;
  Weighted popularity_;
  Rng loop_rng_, burst_rng_, churn_rng_, arrival_rng_;
  std::vector<uint32_t> tenants_;  // by rank of popularity
  std::vector<uint32_t> unseen_;   // in the order in which the warm-up will show them, last first
  boost::unordered_flat_map<uint32_t, prompt::Identity> prompts_;
  uint32_t next_tenant_;
  uint32_t vacant_ = 0;  // the rank whose tenant has left
  uint64_t churned_ = 0;
  uint64_t sent_ = 0;    // by the loop
  TimePoint arrived_{};  // the last of an open loop
  uint32_t burst_ = 0;   // sent of the burst
  uint64_t own_ = 0;     // of own texts so far
};

}  // namespace hidane::sim
