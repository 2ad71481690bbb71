#pragma once
#include <cstdint>

#include "base/clock.h"

namespace hidane::routing {

/// Shares of load as counts that fade. A half-life lasts `halflife_s`, and at least
/// `requests_min` requests, so that a share is never read off a handful of samples. Ages count
/// half-lives, so idle time alone never decays more than requests replace. O(1) per call.
class LoadShare {
 public:
  struct Count {
    double value = 0;  // as of `age`
    double age = 0;
  };

  LoadShare(double halflife_s, double requests_min)
      : halflife_s_(halflife_s), requests_min_(requests_min) {}

  /// One request for `count`.
  void Add(Count& count, TimePoint now);
  /// Requests counted, faded.
  double Value(const Count& count) const;
  /// The share that `count` has at least, two standard errors below its mean.
  double LowerShare(const Count& count) const;
  double Share(const Count& count) const;
  double Total() const { return Value(total_); }  ///< requests counted of all, faded

 private:
  double halflife_s_;
  double requests_min_;
  double age_ = 0;
  TimePoint last_{};
  Count total_;
};

}  // namespace hidane::routing
