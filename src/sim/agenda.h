#pragma once
#include <cstdint>

#include "sim/event_queue.h"

namespace hidane::sim {

/// What the simulation has planned.
struct Event {
  enum class Kind : uint8_t {
    kSecond,     ///< a virtual second has passed
    kSend,       ///< client sends `id` of those that wait for their time
    kStepBegin,  ///< idle worker `who` may have something to do
    kStepEnd,    ///< worker `who`, if it is still in its life number `id`
    kWake,       ///< gateway's follower `id` has waited long enough
    kDeltas,     ///< batch `id` of placement changes reaches the other gateways
    kEnter,      ///< `id` leaves the admission line for its gateway
    kPatience,   ///< client of `id` leaves if it has no byte yet
  };
  Kind kind{};
  uint32_t who = 0;
  uint64_t id = 0;
};
using Agenda = EventQueue<Event>;

}  // namespace hidane::sim
