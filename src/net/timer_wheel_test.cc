#include "net/timer_wheel.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <memory>
#include <vector>

namespace hidane::net {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

struct Probe final : TimerWheel::Timer {
  void OnDue() override { ++fired; }
  int fired = 0;
};

TEST(TimerWheelTest, FiresOnceNeverEarlyWithinAMillisecond) {
  TimerWheel wheel(milliseconds(7));
  Probe probe;
  wheel.Arm(probe, microseconds(107'300));
  wheel.Advance(microseconds(107'299));
  EXPECT_EQ(probe.fired, 0);
  wheel.Advance(microseconds(108'300));
  EXPECT_EQ(probe.fired, 1);
  wheel.Advance(milliseconds(10'000));
  EXPECT_EQ(probe.fired, 1);
  EXPECT_FALSE(wheel.Next());
}

// Against a model: a map from timer to due time.
RC_GTEST_PROP(TimerWheelTest, AgreesWithAMap, ()) {
  TimePoint now = milliseconds(*rc::gen::inRange(0, 10'000));
  TimerWheel wheel(now);
  std::vector<std::unique_ptr<Probe>> timers;
  for (int i = 0; i < 8; ++i) timers.push_back(std::make_unique<Probe>());
  std::map<size_t, TimePoint> armed;
  for (int step = *rc::gen::inRange(0, 60); step > 0; --step) {
    const auto which = *rc::gen::inRange<size_t>(0, timers.size());
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        wheel.Arm(*timers[which],
                  armed[which] = now + microseconds(*rc::gen::inRange(0, 20'000'000)));
        break;
      case 1:
        timers[which]->Disarm();
        armed.erase(which);
        break;
      case 2:
        timers[which] = std::make_unique<Probe>();
        armed.erase(which);
        break;
      default: {
        now += microseconds(*rc::gen::inRange(0, 9'000'000));
        wheel.Advance(now);
        for (size_t i = 0; i < timers.size(); ++i) {
          const auto due = armed.find(i);
          const bool fired = timers[i]->fired > 0;
          if (fired) RC_ASSERT(due != armed.end() && due->second <= now);
          if (!fired && due != armed.end()) RC_ASSERT(due->second > now - milliseconds(1));
          if (fired) armed.erase(i);
          timers[i]->fired = 0;
        }
      }
    }
    const auto next = wheel.Next();
    for (const auto& [i, due] : armed) RC_ASSERT(next && *next < due + milliseconds(1));
  }
}

}  // namespace
}  // namespace hidane::net
