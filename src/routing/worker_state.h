#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "routing/cache_index.h"
#include "routing/engine_speed.h"
#include "routing/health.h"
#include "routing/ledger.h"
#include "routing/params.h"
#include "routing/worker.h"

namespace hidane::routing {

/// All that is known of one worker. Owned by the Router; policies read it.
struct WorkerState {
  /// `pool_speed` is what the pool's workers reach on average; it outlives the worker.
  WorkerState(WorkerSpec of, const Params& params, const HealthParams& health_params,
              const EngineSpeed* pool_speed);

  bool MayTake(TimePoint now) const { return !draining && health.MayTake(now); }
  /// Begins to read it from memory, so that the reads of several workers run side by side.
  void Prefetch() const {
    constexpr size_t kLine = 64;
    for (size_t at = 0; at < sizeof *this; at += kLine) {
      __builtin_prefetch(reinterpret_cast<const char*>(this) + at);
    }
  }
  /// Tokens that its prefix cache may hold; changing it trims the index.
  void SetCapacity(uint64_t tokens);
  /// Feedback said `actual` of `expected` cached tokens: the index trusts itself less or more.
  void Trust(bool held);

  WorkerSpec spec;
  uint64_t key;  ///< hash of the name
  uint64_t capacity_tokens;
  Health health;
  CacheIndex index;
  Ledger ledger;
  EngineSpeed speed;
  RunningReserve reserve;
  TimePoint refreshes_from{};  ///< none before
  double trust = 1;            ///< share of the capacity that the index counts on
  bool draining = false;
  bool feedback = false;
  uint32_t running = 0;
  uint32_t waiting = 0;
  std::optional<double> start_time_s;
};

/// Workers of one pool, in the order of their ids.
using WorkerSpan = std::span<WorkerState* const>;

inline WorkerState* FindWorker(WorkerSpan workers, WorkerId id) {
  if (workers.empty()) return nullptr;
  // Ids of a pool are mostly in a row: then its place is known.
  const size_t guess = size_t{id.value()} - workers.front()->spec.id.value();
  if (guess < workers.size() && workers[guess]->spec.id == id) return workers[guess];
  const auto at =
      std::ranges::lower_bound(workers, id, {}, [](const WorkerState* w) { return w->spec.id; });
  return at != workers.end() && (*at)->spec.id == id ? *at : nullptr;
}

}  // namespace hidane::routing
