#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace hidane::bench {

/// Decoding at a cap: a dense cache of `cap` tokens; `period` tokens are appended, `period` of all
/// are evicted, the mechanism repairs; and again. With period 1 the victim goes first, so that the
/// next token can take its slot: slot reuse, the cheapest repair.
struct SteadyCase {
  uint32_t cap = 2048, period = 128, block_size = 16;
};

/// Moves per round, means over all rounds.
struct SteadyRow {
  SteadyCase at;
  double ours = 0, order_preserving = 0, out_of_place = 0;
  double bound = 0;           ///< MovesBound of the very live sets that ours met
  double expected_order = 0;  ///< cap - cap / (period + 1): all behind the first victim
  double expected_ours = 0;   ///< period * cap / (cap + period): what average blocks hold; 0 for 1
  double ours_blocks = 0;     ///< after a round
  double plan_us_p50 = 0, plan_us_p99 = 0;
};

/// Victims are tokens drawn uniformly, the same for every mechanism; each keeps its own layout.
SteadyRow RunSteady(const SteadyCase& at, uint32_t rounds, uint64_t seed);

}  // namespace hidane::bench
