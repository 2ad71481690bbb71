#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>

#include "routing/lru_map.h"

namespace hidane::routing {

/// What the turns of conversations leave in the workers' caches where several gateways send them.
/// CacheIndex knows each block that this gateway sent and nothing of what others did; here a
/// conversation is one entry of its size, and the turns that others tell of count as one's own:
///
///     worker 7, latest first: [static a] [talk 1: 90k] [talk 4: 60k] [static b] [talk 2: 12k of
///     80k]
///
/// Forgets as engines do, what was used longest ago. Bounded by the workers' memory and by `most`
/// entries each. Not thread-safe. O(1) per call, amortized.
class TurnCaches {
 public:
  explicit TurnCaches(size_t most) : most_(most) {}

  struct Turn {
    uint64_t worker = 0;  ///< key of the one that serves it
    uint64_t k1 = 0;
    uint64_t k2 = 0;
    uint32_t k1_tokens = 0;  ///< of its static prefix
    uint32_t tokens = 0;     ///< of the prompt behind it
  };
  /// The worker, which holds `capacity` tokens, computes the turn's prompt.
  void Use(const Turn& turn, uint64_t capacity);
  /// As Use, of a turn that another gateway tells of.
  void Hear(const Turn& turn, uint64_t capacity);
  /// Some gateway told of a turn: else CacheIndex knows all that is here, and more.
  bool hears() const { return hears_; }
  /// Tokens behind its static prefix that are left there of a conversation.
  uint32_t Left(uint64_t worker, uint64_t k2) const;
  void Forget(uint64_t worker) { caches_.erase(worker); }  ///< it left, or was emptied

 private:
  struct Cache {
    explicit Cache(size_t most) : left(most) {}
    LruMap<uint32_t> left;  // tokens, by K1 and K2
    uint64_t tokens = 0;    // of all
  };
  static void Touch(Cache& cache, uint64_t key, uint32_t tokens);

  size_t most_;
  bool hears_ = false;
  boost::unordered_flat_map<uint64_t, Cache> caches_;  // by worker
};

}  // namespace hidane::routing
