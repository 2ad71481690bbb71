#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "routing/lru_map.h"

namespace hidane::routing {

/// What the requests of all gateways that tell each other leave in the workers' caches. CacheIndex
/// knows each block that this gateway sent and nothing of what others did; here a static prefix
/// and a conversation are one entry each, of their size, and told requests count as one's own:
///
///     worker 7, latest first: [prefix a] [talk 1: 90k] [passing: 3k] [talk 2: 12k of 80k]
///
/// What comes once (`passing`) is one entry a second. Forgets as engines do, what was used longest
/// ago. Bounded by the workers' memory and by `most` entries each. Not thread-safe. O(1) per call,
/// amortized.
class JointCaches {
 public:
  explicit JointCaches(size_t most) : most_(most) {}

  struct Use {
    uint64_t worker = 0;  ///< key of the one that serves it
    uint64_t k1 = 0;
    uint64_t k2 = 0;         ///< of the conversation; 0: what is behind the prefix comes once
    uint32_t k1_tokens = 0;  ///< of its static prefix
    uint32_t tokens = 0;     ///< of the prompt behind it
    TimePoint now{};
  };
  /// The worker, which holds `capacity` tokens, computes a prompt.
  void Add(const Use& use, uint64_t capacity);

  /// Some gateway told of something: else CacheIndex knows all that is here, and more.
  bool hears() const { return hears_; }
  void SetHears() { hears_ = true; }

  /// Tokens that are left there of a static prefix, or of a conversation behind its prefix.
  uint32_t Left(uint64_t worker, uint64_t key) const;
  /// When what the worker would forget next was last used; nullopt while there is room.
  std::optional<TimePoint> EvictsNext(uint64_t worker) const;
  void Forget(uint64_t worker) { caches_.erase(worker); }  ///< it left, or was emptied

 private:
  struct Entry {
    uint32_t tokens = 0;
    TimePoint used{};
  };
  struct Cache {
    explicit Cache(size_t most) : left(most) {}
    LruMap<Entry> left;   // by K1, K2 and second
    uint64_t tokens = 0;  // of all
    uint64_t capacity = 0;
  };
  static Entry& Touch(Cache& cache, uint64_t key, TimePoint now);
  static void Resize(Cache& cache, Entry& entry, uint32_t tokens);
  static void Trim(Cache& cache);

  size_t most_;
  bool hears_ = false;
  boost::unordered_flat_map<uint64_t, Cache> caches_;  // by worker
};

}  // namespace hidane::routing
