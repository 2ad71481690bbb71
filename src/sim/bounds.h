#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sim/gpu.h"
#include "sim/prefix_forest.h"
#include "sim/request.h"

namespace hidane::sim {

/// What no router can pass: upper bounds of the hit ratio of a sequence of requests. Counted
/// requests make the ratio, all of them fill the cache.
class HitBounds {
 public:
  /// In order of sending. Returns the tokens of the prompt that came before.
  uint32_t Add(const Request& request);

  /// Every block that anybody sent, or got as an answer, before hits. NaN without a request.
  double Infinite() const;

  /// One cache of `kv_tokens` tokens for the whole fleet that knows the future: it keeps the
  /// tokens that are needed soonest. No fleet of that memory does better on this sequence, as
  /// the fleet also keeps tokens twice, in whole blocks, with all before them, and the running
  /// requests' own. O(requests x depth of their conversations).
  /// Source: Belady, IBM Systems Journal 5(2), 1966 (MIN), over tokens as items of equal size.
  double Within(uint64_t kv_tokens) const;

 private:
  struct Sent {
    PrefixForest::Place end;  ///< of prompt and answer
    uint32_t prompt_tokens;
    bool counted;
  };

  PrefixForest forest_;
  std::vector<Sent> sent_;
  std::vector<PrefixForest::Place> cuts_;  ///< places where a path ends inside a run
  uint64_t prompt_tokens_ = 0;             ///< of counted requests
  uint64_t known_tokens_ = 0;              ///< of them, seen before
};

/// Until jobs of these lengths are all done by `engines` equal ones, whatever the order: at
/// least the longest job, the mean load, and for each j the j shortest of the j - 1 times
/// `engines` plus one longest jobs, of which some engine gets j.
double MakespanAtLeast(std::vector<double> seconds, uint32_t engines);
/// The same as balanced placement does it: the longest job first, to the engine that is free
/// first (LPT). At most 4/3 of the optimum. Source: Graham, SIAM J. Appl. Math. 17(2), 1969.
double MakespanBalanced(std::vector<double> seconds, uint32_t engines);

/// Bounds of a burst on empty caches: each distinct static prefix is computed once.
struct ColdBurst {
  uint32_t prefixes = 0;  ///< distinct ones
  double hit_ratio = 0;   ///< at most
  double at_least_s = 0;  ///< until the last prefix is computed, whatever the placement
  double balanced_s = 0;  ///< the same by LPT
};
/// `chunk_tokens`: of a prefill step. REQUIRES: engines > 0.
ColdBurst BoundColdBurst(std::span<const Request> burst, const GpuSetup& gpu, uint32_t engines,
                         uint32_t chunk_tokens = 8'192);

}  // namespace hidane::sim
