#include "routing/joint_caches.h"

#include <algorithm>
#include <chrono>

#include "base/rng.h"

namespace hidane::routing {
namespace {

uint64_t KeyOfSecond(TimePoint now) {
  return Mix64(~static_cast<uint64_t>(now / std::chrono::seconds(1)));
}

}  // namespace

JointCaches::Entry& JointCaches::Touch(Cache& cache, uint64_t key, TimePoint now) {
  Entry& entry = cache.left.Touch(key, [&](auto& oldest) { cache.tokens -= oldest.second.tokens; });
  entry.used = now;
  return entry;
}

void JointCaches::Resize(Cache& cache, Entry& entry, uint32_t tokens) {
  cache.tokens += tokens;
  cache.tokens -= entry.tokens;
  entry.tokens = tokens;
}

// A static prefix is used with all that comes behind it, so it is the more recent.
void JointCaches::Add(const Use& use, uint64_t capacity) {
  Cache& cache = caches_.try_emplace(use.worker, most_).first->second;
  cache.capacity = capacity;
  if (use.k2 != 0) {
    Resize(cache, Touch(cache, use.k2, use.now), use.tokens);
  } else {
    Entry& passing = Touch(cache, KeyOfSecond(use.now), use.now);
    Resize(cache, passing, passing.tokens + use.tokens);
  }
  Resize(cache, Touch(cache, use.k1, use.now), use.k1_tokens);
  Trim(cache);
}

void JointCaches::Trim(Cache& cache) {
  while (cache.tokens > cache.capacity) {
    auto& [key, oldest] = cache.left.oldest();
    const uint64_t excess = cache.tokens - cache.capacity;
    const auto gone = static_cast<uint32_t>(std::min<uint64_t>(oldest.tokens, excess));
    Resize(cache, oldest, oldest.tokens - gone);
    if (oldest.tokens == 0) cache.left.Erase(key);
  }
}

uint32_t JointCaches::Left(uint64_t worker, uint64_t key) const {
  const auto at = caches_.find(worker);
  const Entry* const entry = at == caches_.end() ? nullptr : at->second.left.Find(key);
  return entry == nullptr ? 0 : entry->tokens;
}

std::optional<TimePoint> JointCaches::EvictsNext(uint64_t worker) const {
  constexpr double kFull = 0.98;
  const auto at = caches_.find(worker);
  if (at == caches_.end() || at->second.left.empty()) return std::nullopt;
  const Cache& cache = at->second;
  const bool full =
      static_cast<double>(cache.tokens) >= kFull * static_cast<double>(cache.capacity);
  return full ? std::optional(cache.left.oldest().second.used) : std::nullopt;
}

}  // namespace hidane::routing
