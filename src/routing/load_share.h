#pragma once
#include <cstdint>

#include "base/clock.h"
#include "routing/half_lives.h"

namespace hidane::routing {

/// Shares of load as counts that fade: a half-life lasts `halflife_s`, and at least `requests_min`
/// requests. O(1) per call.
class LoadShare {
 public:
  struct Count {
    double value = 0;  // as of `age`
    double age = 0;
  };

  LoadShare(double halflife_s, double requests_min)
      : time_(halflife_s), requests_min_(requests_min) {}

  /// One request for `count`.
  void Add(Count& count, TimePoint now);
  /// Requests counted, faded.
  double Value(const Count& count) const;
  /// The share that `count` has at least, two standard errors below its mean.
  double LowerShare(const Count& count) const;
  double Share(const Count& count) const;
  double Total() const { return Value(total_); }  ///< requests counted of all, faded

 private:
  HalfLives time_;
  double requests_min_;
  Count total_;
};

}  // namespace hidane::routing
