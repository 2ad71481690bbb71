#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"

namespace hidane::sim {

/// A run as it went, for reports: the fleet at the start of each span of `step`, and what finished
/// in it.
struct Series {
  struct Point {
    // Of the requests that finished in the span, warm-up included.
    uint32_t finished = 0;
    uint32_t failed = 0;
    uint64_t prompt_tokens = 0, cached_tokens = 0;
    double ttft_mean_s = 0, ttft_max_s = 0;
    // Per worker, at the start of the span; empty unless asked for.
    std::vector<float> kv_held{};    ///< share of its KV memory that running requests hold
    std::vector<float> kv_cached{};  ///< share that the prefix cache fills, held or not
    std::vector<float> assigned{};   ///< share that gateway 0's placement has given away
  };
  Duration step{};
  std::vector<Point> points;
};

/// Seconds from `change` until every ten seconds [from, to), as far as `last`, are `good`, for
/// good. Spans do not reach back before the change. NaN: they never are.
double SecondsUntilBack(size_t change, size_t last,
                        const std::function<bool(size_t from, size_t to)>& good);

}  // namespace hidane::sim
