#pragma once
#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace hidane::admission {

/// How fast the line moves: tokens let in a second, of late.
class DrainRate {
 public:
  /// `first_s`: what a place is expected to take until one has been given.
  explicit DrainRate(double first_s) : first_s_(first_s) {}

  void LineBegins(TimePoint now) { last_ = now; }
  void LetIn(uint64_t tokens, TimePoint now) {
    tokens_ = kKeep * tokens_ + static_cast<double>(tokens);
    seconds_ = kKeep * seconds_ + Seconds(now - last_);
    last_ = now;
  }
  /// Until `places` conversations of `tokens` together have been let in. At most a day.
  Duration Until(uint32_t places, uint64_t tokens, TimePoint now) const {
    const double since_last = Seconds(now - last_);
    double wait = first_s_ * places;
    if (tokens_ > 0) {
      wait = (seconds_ + since_last) / tokens_ * static_cast<double>(tokens) - since_last;
    }
    return FromSeconds(std::clamp(wait, 0.0, kMaxWait));
  }

 private:
  static constexpr double kKeep = 0.9;  ///< of the past, a place: about ten places count
  static constexpr double kMaxWait = 86'400;

  double first_s_;
  double tokens_ = 0;
  double seconds_ = 0;
  TimePoint last_{};
};

}  // namespace hidane::admission
