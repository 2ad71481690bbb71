#include "sim/series.h"

#include <algorithm>
#include <limits>

namespace hidane::sim {

double SecondsUntilBack(size_t change, size_t last,
                        const std::function<bool(size_t from, size_t to)>& good) {
  constexpr size_t kSpan = 10;  // enough requests that chance is no dip
  size_t back = change;
  for (size_t end = change + 1; end <= last; ++end) {
    if (!good(std::max(change, end - std::min(end, kSpan)), end)) back = end + 1;
  }
  return back > last ? std::numeric_limits<double>::quiet_NaN()
                     : static_cast<double>(back - change);
}

}  // namespace hidane::sim
