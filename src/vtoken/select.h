#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace hidane::vtoken {

/// Logical positions [begin, end).
struct PositionSpan {
  uint32_t begin = 0, end = 0;
};

/// Tokens that stay whatever their score.
struct Guards {
  uint32_t sinks = 0;                         ///< the first positions
  uint32_t recent = 0;                        ///< the newest positions
  std::span<const PositionSpan> pinned = {};  ///< ascending, disjoint
};

/// Significant bits of a score that count.
inline constexpr int kScoreBits = 12;

/// A score as an integer that sorts like it, rounded to `kScoreBits` significant bits (halves away
/// from zero; -0 is 0; NaN sorts lowest). Scores that differ by float noise alone, some 2^-20 of
/// their size, get the same key unless a rounding boundary lies just between them.
uint32_t ScoreKey(float score);

/// Chooses which tokens of one unit go, so that exactly `keep` stay: the guarded ones and those
/// with the highest keys. Among equal keys the newest stays: an old token has had its chance.
///
/// score, positions: [n], positions ascending. `victims` becomes their indices, ascending; n - keep
/// of them, none when keep >= n. `keys` is scratch. O(n + v log v) for v victims,
/// no allocation once both have grown. kInvalidArgument, and no victims, when more than `keep`
/// tokens are guarded.
Status SelectVictims(std::span<const float> score, std::span<const uint32_t> positions,
                     const Guards& guards, uint32_t keep, std::vector<uint64_t>& keys,
                     std::vector<uint32_t>& victims);

}  // namespace hidane::vtoken
