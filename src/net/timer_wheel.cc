#include "net/timer_wheel.h"

#include <algorithm>
#include <bit>

namespace hidane::net {

void TimerWheel::Arm(Timer& timer, TimePoint due) {
  timer.due_ = std::max(Floor(due + kTick - Duration(1)), done_ + 1);
  if (timer.is_linked() && timer.slot_at_ <= timer.due_ && timer.slot_at_ > done_) return;
  if (timer.is_linked()) timer.unlink();
  Link(timer);
}

void TimerWheel::Link(Timer& timer) {
  timer.slot_at_ = std::min(timer.due_, done_ + kSlots - 1);
  const auto slot = static_cast<size_t>(timer.slot_at_ % kSlots);
  slots_[slot].push_back(timer);
  used_[slot / 64] |= uint64_t{1} << (slot % 64);
}

int64_t TimerWheel::NextUsed(int64_t tick) const {
  for (int64_t ahead = 0; ahead < kSlots;) {
    const auto slot = static_cast<size_t>((tick + ahead) % kSlots);
    const uint64_t word = used_[slot / 64] >> (slot % 64);
    if (word != 0) {
      ahead += std::countr_zero(word);
      return ahead < kSlots ? tick + ahead : -1;
    }
    ahead += 64 - static_cast<int64_t>(slot % 64);
  }
  return -1;
}

void TimerWheel::Advance(TimePoint now) {
  const int64_t now_tick = Floor(now);
  while (done_ < now_tick) {
    const int64_t tick = NextUsed(done_ + 1);
    if (tick < 0 || tick > now_tick) {
      done_ = now_tick;
      return;
    }
    done_ = tick;
    const auto slot = static_cast<size_t>(tick % kSlots);
    used_[slot / 64] &= ~(uint64_t{1} << (slot % 64));
    List list;
    list.swap(slots_[slot]);
    while (!list.empty()) {
      Timer& timer = list.front();
      timer.unlink();
      if (timer.due_ == Timer::kNever) continue;
      if (timer.due_ > tick) {
        Link(timer);
      } else {
        timer.due_ = Timer::kNever;
        timer.OnDue();
      }
    }
  }
}

std::optional<TimePoint> TimerWheel::Next() const {
  const int64_t tick = NextUsed(done_ + 1);
  if (tick < 0) return std::nullopt;
  return tick * kTick;
}

}  // namespace hidane::net
