#pragma once
#include <algorithm>

#include "base/clock.h"

namespace hidane::admission {

/// The longest gap between turns of late: follows a longer one at once, a shorter one slowly.
inline Duration FollowGap(Duration usual, Duration gap) {
  constexpr int kForget = 32;  // turns until a long gap is two thirds forgotten
  return gap > usual ? gap : usual + (gap - usual) / kForget;
}

/// How long a conversation may idle before its next turn is no longer expected.
struct IdleRule {
  double factor = 1.5;                       ///< times its usual gap
  Duration first{std::chrono::seconds(60)};  ///< usual gap until conversations have shown theirs
  Duration least{std::chrono::seconds(30)};
  Duration most{std::chrono::seconds(600)};

  Duration Patience(Duration usual) const {
    return std::clamp(FromSeconds(Seconds(usual) * factor), least, most);
  }
};

}  // namespace hidane::admission
