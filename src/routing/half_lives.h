#pragma once
#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace hidane::routing {

/// The time by which counts of work fade, in half-lives: one lasts so many seconds, and at least
/// so many requests. So neither a pause nor a small load leaves only a handful of samples to read
/// something off. O(1).
class HalfLives {
 public:
  explicit HalfLives(double seconds) : seconds_(seconds) {}

  /// One request of all that fade by this time. REQUIRES: `requests_min` > 0.
  void OnRequest(TimePoint now, double requests_min) {
    const double elapsed_s = std::max(0.0, Seconds(now - last_));
    last_ = std::max(last_, now);
    age_ += std::min(elapsed_s / seconds_, 1 / requests_min);
  }
  double age() const { return age_; }

 private:
  double seconds_;
  double age_ = 0;
  TimePoint last_{};
};

/// What is left at age `now` of a `value` as of age `then`.
inline double Faded(double value, double then, double now) {
  return value * std::exp2(then - now);
}

}  // namespace hidane::routing
