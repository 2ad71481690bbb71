#pragma once
#include <chrono>
#include <cstdint>
#include <limits>

#include "base/clock.h"
#include "base/ids.h"

namespace hidane::routing {

struct WorkerState;

/// How long the prefix caches of a pool keep what nobody uses. An engine that evicts in LRU order
/// keeps everything about equally long, and engines that are loaded alike do, so each entry that
/// was found gone tells of all. Pure.
class CacheLifetime {
 public:
  /// An entry unused for `idle_s` was gone.
  void Gone(double idle_s);
  /// A refresh found its prefix, so the lifetime may be longer.
  void Held();
  /// Infinite until something was found gone.
  double seconds() const { return seconds_; }

 private:
  double seconds_ = std::numeric_limits<double>::infinity();
};

/// A prefix to be used again by a request of the gateway's own: its static part and one token of
/// answer, which computes next to nothing and makes the prefix recent in the engine's LRU order.
struct Refresh {
  uint64_t k1 = 0;
  WorkerId worker;
};

/// After a refresh that found its prefix gone the worker gets no others for so long: where memory
/// is short, as while a replica is out, refreshes would only compute anew what nobody asked for.
inline constexpr Duration kRefreshPause = std::chrono::seconds(10);

/// A prefix at home on a worker.
struct Kept {
  uint32_t tokens = 0;
  double idle_s = 0;       ///< since its last request or refresh there
  uint32_t refreshes = 0;  ///< since its last request
};

/// It is time to refresh the prefix, where caches keep what is unused for `lifetime_s`. Half of the
/// cache's lifetime has passed, so that it is still there; and what its refreshes cost since its
/// last request is less than computing it anew, so that what is never asked for again costs at most
/// twice (the ski-rental rule: Karlin, Manasse, Rudolph, Sleator 1988).
bool RefreshDue(const Kept& kept, const WorkerState& worker, double lifetime_s, TimePoint now);

}  // namespace hidane::routing
