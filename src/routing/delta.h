#pragma once
#include <cstdint>

#include "base/clock.h"

namespace hidane::routing {

/// A change of home, as gateways tell each other: a plain value of at most 64 bytes. Sizes and
/// loads stay local; a worker is named by its stable key, not by a local id.
struct Delta {
  enum class Kind : uint8_t {
    kAddHome,      ///< `key` lives at `worker` too
    kDropHome,     ///< and no longer does
    kConversation  ///< the conversation `key` (of prefix `k1`) lives at `worker` now
  };
  uint64_t key = 0;      ///< K1, or K2 for kConversation
  uint64_t k1 = 0;       ///< kConversation: its prefix
  uint64_t worker = 0;   ///< hash of the worker's name
  uint64_t epoch = 0;    ///< of the entry; the higher wins
  uint32_t replica = 0;  ///< ties go to the higher id
  uint32_t tokens = 0;   ///< size as the sender estimates it, for a receiver that never saw it
  Kind kind = Kind::kAddHome;
};
static_assert(sizeof(Delta) <= 64);

}  // namespace hidane::routing
