#include "routing/kv_event.h"

#include <boost/unordered/unordered_flat_set.hpp>

namespace hidane::routing {

bool Apply(std::span<const KvEvent> events, CacheIndex& index) {
  boost::unordered_flat_set<uint64_t> removed;
  bool cleared = false;
  for (const KvEvent& event : events) {
    if (!event.medium.empty() && event.medium != "GPU") continue;
    if (event.kind == KvEvent::Kind::kCleared) {
      removed.clear();
      index.Clear();
      cleared = true;
    } else if (event.kind == KvEvent::Kind::kRemoved) {
      removed.insert(event.blocks.begin(), event.blocks.end());
    }
  }
  if (!removed.empty()) index.Forget(removed);
  return cleared;
}

}  // namespace hidane::routing
