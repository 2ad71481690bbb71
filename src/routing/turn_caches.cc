#include "routing/turn_caches.h"

#include <algorithm>

namespace hidane::routing {

void TurnCaches::Touch(Cache& cache, uint64_t key, uint32_t tokens) {
  uint32_t& left = cache.left.Touch(key, [&](auto& oldest) { cache.tokens -= oldest.second; });
  cache.tokens += tokens;
  cache.tokens -= left;
  left = tokens;
}

// A static prefix is used with each of its conversations, so it is the more recent.
void TurnCaches::Use(const Turn& turn, uint64_t capacity) {
  Cache& cache = caches_.try_emplace(turn.worker, most_).first->second;
  Touch(cache, turn.k2, turn.tokens);
  Touch(cache, turn.k1, turn.k1_tokens);
  while (cache.tokens > capacity) {
    auto& [key, left] = cache.left.oldest();
    const auto gone = static_cast<uint32_t>(std::min<uint64_t>(left, cache.tokens - capacity));
    cache.tokens -= gone;
    left -= gone;
    if (left == 0) cache.left.Erase(key);
  }
}

void TurnCaches::Hear(const Turn& turn, uint64_t capacity) {
  hears_ = true;
  Use(turn, capacity);
}

uint32_t TurnCaches::Left(uint64_t worker, uint64_t k2) const {
  const auto at = caches_.find(worker);
  const uint32_t* const left = at == caches_.end() ? nullptr : at->second.left.Find(k2);
  return left == nullptr ? 0 : *left;
}

}  // namespace hidane::routing
