#pragma once
#include <chrono>

namespace hidane {

/// Time since an arbitrary origin. Comes in by reference everywhere: the simulator passes
/// virtual time, the processes pass SteadyClock().
using TimePoint = std::chrono::nanoseconds;
using Duration = std::chrono::nanoseconds;

struct Clock {
  virtual TimePoint Now() const = 0;

 protected:
  ~Clock() = default;
};

/// The process's monotonic clock. Thread-safe.
const Clock& SteadyClock();

/// A clock that a test moves by hand.
class ManualClock final : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  void Advance(Duration d) { now_ += d; }

 private:
  TimePoint now_{};
};

constexpr double Seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}
constexpr Duration FromSeconds(double s) {
  return Duration(static_cast<int64_t>(s * 1e9));
}

}  // namespace hidane
