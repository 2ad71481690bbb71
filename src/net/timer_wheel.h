#pragma once
#include <array>
#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace hidane::net {

/// Deadlines of one loop, in ticks of 1 ms: a hashed wheel (Varghese and Lauck 1987) with lazy
/// cancel. Arming an armed timer later, the usual case, and disarming are one store; the timer
/// moves, or falls out, when its old slot comes up. Pure: time comes in.
class TimerWheel {
 public:
  /// What is armed. Its owner keeps it; destroying it disarms.
  class Timer : public boost::intrusive::list_base_hook<
                    boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
   public:
    void Disarm() { due_ = kNever; }
    bool armed() const { return due_ != kNever; }

   protected:
    ~Timer() = default;
    virtual void OnDue() = 0;  ///< on the loop's thread; may arm, disarm and destroy timers

   private:
    friend class TimerWheel;
    static constexpr int64_t kNever = INT64_MAX;
    int64_t due_ = kNever;  // in ticks
    int64_t slot_at_ = 0;   // the tick whose slot it is linked in
  };

  explicit TimerWheel(TimePoint now) : done_(Floor(now)) {}

  void Arm(Timer& timer, TimePoint due);
  /// Calls OnDue of everything due at `now`.
  void Advance(TimePoint now);
  /// When Advance has something to do again, at the earliest; nothing if it holds no timer.
  std::optional<TimePoint> Next() const;

 private:
  static constexpr int64_t kSlots = 4096;
  static constexpr Duration kTick = std::chrono::milliseconds(1);
  using List = boost::intrusive::list<Timer, boost::intrusive::constant_time_size<false>>;

  static int64_t Floor(TimePoint t) { return t / kTick; }
  void Link(Timer& timer);
  int64_t NextUsed(int64_t tick) const;  // first tick >= `tick` with a used slot, or -1

  std::array<List, kSlots> slots_;
  std::array<uint64_t, kSlots / 64> used_{};  // a bit for each slot that may hold timers
  int64_t done_;                              // every tick up to here has been served
};

}  // namespace hidane::net
