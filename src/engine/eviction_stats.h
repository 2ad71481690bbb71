#pragma once
#include <cstdint>

#include "base/clock.h"

namespace hidane::engine {

/// What eviction did and what it cost, so far.
struct EvictionStats {
  uint64_t evicted = 0;  ///< tokens of units: one that all of n units lose counts n times
  uint64_t epochs = 0;   ///< steps after which somebody lost tokens
  uint64_t moves = 0;    ///< rows of a unit that were copied for it
  uint64_t blocks_freed = 0;
  uint64_t saved = 0;  ///< times a sequence's K/V left its blocks, to come back later
  Duration wait{};     ///< the engine thread's wait for moves
  Duration busy{};     ///< its time in all eviction work, the wait included
};

}  // namespace hidane::engine
