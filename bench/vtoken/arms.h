#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "vtoken/live_set.h"
#include "vtoken/relocation_planner.h"

namespace hidane::bench {

/// What may be done once a policy has chosen its victims. All but the block-granular one keep
/// exactly the tokens that the policy chose.
enum class Mechanism : uint8_t {
  kFullKv,           ///< nothing is evicted
  kNaiveEvict,       ///< a masking kernel skips the dead; a block goes when all of it is dead
  kBlockGranular,    ///< whole blocks go, the least occupied first, for the same number of tokens
  kPageSizeOne,      ///< an index entry per token; eviction drops entries, nothing moves
  kOrderPreserving,  ///< everything behind the first hole is packed forward, in place
  kOutOfPlace,       ///< everything behind the leading full blocks is copied to fresh blocks
  kSlotReuse,        ///< dead slots wait for new tokens; until then it is Naive-Evict
  kOurs,             ///< RelocationPlanner
};
inline constexpr std::array kMechanisms{Mechanism::kFullKv,          Mechanism::kNaiveEvict,
                                        Mechanism::kBlockGranular,   Mechanism::kPageSizeOne,
                                        Mechanism::kOrderPreserving, Mechanism::kOutOfPlace,
                                        Mechanism::kSlotReuse,       Mechanism::kOurs};
std::string_view NameOf(Mechanism mechanism);

/// What it costs one sequence, once. A move is one token of one unit.
struct Outcome {
  double blocks = 0;       ///< held afterwards; fractions where pages are smaller than a block
  double peak_blocks = 0;  ///< held while it copies
  uint64_t moves = 0;
  double kept_choice = 1;  ///< share of the tokens the policy chose that stay
};

/// Units share their block table: a block is dead when it is dead in all of them.
/// REQUIRES: units of equal count, slots and block size. kOurs is measured with the plan itself.
Outcome Apply(Mechanism mechanism, std::span<const vtoken::LiveSet> units);

/// Fewest moves of any compaction into ceil(L / B) blocks, by the formula and in O(blocks^2): the
/// planner's oracle. `free_tail`: as if the last block needed not be dense.
uint64_t MovesBound(std::span<const vtoken::LiveSet> units, bool free_tail);

/// Moves of in-place packing of one unit: live tokens behind the first hole.
uint64_t PackMoves(const vtoken::LiveSet& unit);
/// Copies of one unit out of place: live tokens behind the leading full blocks.
uint64_t CopyMoves(const vtoken::LiveSet& unit);

}  // namespace hidane::bench
