#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "routing/half_lives.h"
#include "routing/policy.h"
#include "routing/worker_state.h"

namespace hidane::routing {

/// Workers that serve the same model, and the policy that chooses among them.
struct Pool {
  EngineSpeed speed;                  ///< of its workers together
  CacheLifetime lifetime;             ///< of their caches
  std::string model;                  ///< empty: any
  std::vector<WorkerState*> workers;  ///< by id
  std::unique_ptr<Policy> policy;
  double output_tokens = 0;          ///< of an answer, smoothed
  HalfLives recent{kRecentSeconds};  ///< by which work given of late fades

  /// A request was routed to one of its workers.
  void OnRouted(TimePoint now) {
    recent.OnRequest(now, kRecentRequests * static_cast<double>(workers.size()));
  }

 private:
  static constexpr double kRecentSeconds = 120;
  static constexpr double kRecentRequests = 20;  // of each worker, on average
};

/// Membership: all workers, each in the pool of its model. Pools live as long as the fleet, so
/// that requests may point at theirs. Policies hear of every change made here. Not thread-safe.
class Fleet {
 public:
  Fleet(const Params& params, const HealthParams& health) : params_(params), health_(health) {}

  /// Adds a worker or replaces its spec. REQUIRES: a known id keeps its name and model.
  void Put(const WorkerSpec& spec, TimePoint now);
  void Remove(WorkerId id, TimePoint now);
  WorkerState* Find(WorkerId id) const;
  const std::vector<std::unique_ptr<WorkerState>>& workers() const { return workers_; }
  const std::vector<std::unique_ptr<Pool>>& pools() const { return pools_; }

  /// The pool of exactly this model, else the one that serves any; nullptr without.
  Pool* PoolOf(std::string_view model) const;
  /// Something that the worker's policy must know has changed.
  void Changed(const WorkerState& worker, TimePoint now);
  /// The worker's cache is empty: it restarted, may come back so, or said so.
  void Emptied(WorkerState& worker);
  /// A fault of `worker`. One that takes it out empties its index: it may come back empty.
  void OnFault(WorkerState& worker, Fault fault, uint64_t fingerprint, TimePoint now);

  /// `name` is what policy() says from now on.
  void SetPolicy(std::string_view name, PolicyMaker make);
  const std::string& policy() const { return policy_; }

 private:
  Pool& PoolFor(const std::string& model);
  void RebuildPools(TimePoint now);

  Params params_;
  HealthParams health_;
  std::string policy_ = "prefix";
  PolicyMaker make_ = [](const Params& params) { return MakePolicy("prefix", params); };
  std::vector<std::unique_ptr<WorkerState>> workers_;  // by id
  std::vector<std::unique_ptr<Pool>> pools_;
};

}  // namespace hidane::routing
