#pragma once
#include <algorithm>
#include <cstdint>

namespace hidane::sched {

/// How likely a cached block that nobody holds is used again before it is evicted, for those that
/// were never used again since they were computed (fresh) and those that were (proven): learned
/// from what became of the last ones. Deterministic.
class ReuseOdds {
 public:
  /// `window`: after so many blocks of a kind they count half. REQUIRES: >= 1.
  explicit ReuseOdds(uint32_t window) : window_(window) {}

  void Used(bool proven) { Add(proven, 1); }
  void Evicted(bool proven) { Add(proven, 0); }
  /// How much likelier for a proven block, in [1, kWorthMax].
  double ProvenWorth() const {
    return std::clamp(Odds(kinds_[1]) / Odds(kinds_[0]), 1.0, kWorthMax);
  }

  static constexpr double kWorthMax = 64;

 private:
  struct Kind {
    double ended = 0;  // used again or evicted
    double used = 0;
  };
  static double Odds(const Kind& kind) { return (kind.used + 1) / (kind.ended + 2); }
  void Add(bool proven, double used) {
    Kind& kind = kinds_[proven];
    kind.ended += 1;
    kind.used += used;
    if (kind.ended < window_) return;
    kind.ended /= 2;
    kind.used /= 2;
  }

  Kind kinds_[2];
  double window_;
};

}  // namespace hidane::sched
