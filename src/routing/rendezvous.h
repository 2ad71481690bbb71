#pragma once
#include <cstdint>

#include "base/rng.h"
#include "routing/worker_state.h"

namespace hidane::routing {

/// Rendezvous hashing: of the workers that `allowed(const WorkerState&)` admits the one with the
/// highest score for `key`; nullptr when there is none. A worker that leaves moves only its own
/// keys. O(workers). Source: Thaler and Ravishankar, "Using name-based mappings to increase hit
/// rates" (1998).
template <class Allowed>
WorkerState* Highest(uint64_t key, WorkerSpan workers, Allowed&& allowed) {
  WorkerState* best = nullptr;
  uint64_t best_score = 0;
  for (WorkerState* const w : workers) {
    const uint64_t score = Mix64(key ^ w->key);
    if (!allowed(*w) || (best != nullptr && score <= best_score)) continue;
    best = w;
    best_score = score;
  }
  return best;
}

}  // namespace hidane::routing
