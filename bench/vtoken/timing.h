#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace hidane::bench {

/// Durations of one thing done many times.
class Timings {
 public:
  template <class F>
  void Time(F&& f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    us_.push_back(took.count());
  }
  /// Quantile in microseconds; 0 when nothing was timed.
  double Us(double quantile) const {
    if (us_.empty()) return 0;
    auto sorted = us_;
    std::ranges::sort(sorted);
    return sorted[static_cast<size_t>(quantile * static_cast<double>(sorted.size() - 1))];
  }

 private:
  std::vector<double> us_;
};

}  // namespace hidane::bench
