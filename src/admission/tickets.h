#pragma once
#include <vector>

#include "admission/fair_line.h"

namespace hidane::admission {

/// Which member each open ticket belongs to. Slots are used again, so that a turn costs no
/// allocation; a number beside the slot tells a stale ticket from a live one. O(1).
class Tickets {
 public:
  using Where = FairLine::Members::iterator;

  Ticket Open(Where member) {
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(slots_.size()));
      slots_.push_back({});
    }
    const uint32_t slot = free_.back();
    free_.pop_back();
    slots_[slot].member = member;
    slots_[slot].open = true;
    return Ticket((uint64_t{slots_[slot].uses} << 32) | slot);
  }

  bool IsOpen(Ticket ticket) const {
    const uint64_t slot = ticket.value() & 0xffffffff;
    return slot < slots_.size() && slots_[slot].open && slots_[slot].uses == ticket.value() >> 32;
  }

  /// REQUIRES: IsOpen(ticket).
  Where MemberOf(Ticket ticket) const {
    return slots_[static_cast<uint32_t>(ticket.value())].member;
  }

  /// REQUIRES: IsOpen(ticket).
  Where Close(Ticket ticket) {
    const auto slot = static_cast<uint32_t>(ticket.value());
    slots_[slot].open = false;
    ++slots_[slot].uses;
    free_.push_back(slot);
    return slots_[slot].member;
  }

  size_t size() const { return slots_.size() - free_.size(); }

 private:
  struct Slot {
    Where member{};
    uint32_t uses = 0;
    bool open = false;
  };
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace hidane::admission
