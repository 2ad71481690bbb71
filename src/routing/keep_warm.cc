#include "routing/keep_warm.h"

#include <algorithm>
#include <cmath>

#include "routing/worker_state.h"

namespace hidane::routing {

void CacheLifetime::Gone(double idle_s) {
  constexpr double kCut = 0.8;
  if (idle_s < seconds_) seconds_ = std::isinf(seconds_) ? idle_s : kCut * seconds_;
}

void CacheLifetime::Held() {
  constexpr double kGrow = 1.002;  // a cut for a hundred of these: one refresh in a hundred is late
  seconds_ *= kGrow;
}

bool RefreshDue(const Kept& kept, const WorkerState& worker, double lifetime_s, TimePoint now) {
  constexpr double kShare = 0.5;      // of the lifetime
  constexpr uint32_t kUncached = 64;  // computed by a refresh: engines cache whole blocks
  if (now < worker.refreshes_from) return false;
  if (kept.idle_s < kShare * lifetime_s || kept.idle_s >= lifetime_s) return false;
  const double refresh_s = worker.speed.PrefillSeconds(kUncached, kept.tokens);
  return kept.refreshes * refresh_s < worker.speed.PrefillSeconds(kept.tokens, 0);
}

}  // namespace hidane::routing
