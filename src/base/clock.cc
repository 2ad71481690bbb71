#include "base/clock.h"

namespace hidane {
namespace {

struct MonotonicClock final : Clock {
  TimePoint Now() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
};

}  // namespace

const Clock& SteadyClock() {
  static const MonotonicClock clock;
  return clock;
}

}  // namespace hidane
