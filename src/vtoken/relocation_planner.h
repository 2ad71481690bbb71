#pragma once
#include <cstdint>
#include <span>

#include "vtoken/live_set.h"
#include "vtoken/memory.h"

namespace hidane::vtoken {

/// What the owner of a sequence may do with one of its blocks.
enum class BlockUse : uint8_t {
  kOwn,     ///< write any slot
  kPinned,  ///< somebody reads it: write only slots behind the last one that was ever live
  kShared,  ///< other sequences hold it: write nothing
};

/// A row set of one unit goes from one slot to another. Slots are table slots of the table before
/// the plan (slot i stands in table block i / block_size), or physical ones, as its user says.
struct SlotMove {
  uint32_t unit, from, to;
  bool operator==(const SlotMove&) const = default;
};

/// Blocks are named by their index in the block table before the plan; the fresh ones follow it.
struct RelocationPlan {
  explicit RelocationPlan(Memory memory = nullptr)
      : kept(memory), freed(memory), moves(memory), unit_begin(memory), incoming(memory) {}

  Vector<uint32_t> kept;         ///< in their new order: ascending, but the tail last
  Vector<uint32_t> freed;        ///< ascending
  uint32_t blocks = 0;           ///< of the table before: kept ones from here on are fresh
  uint32_t fresh = 0;            ///< empty blocks that the host must add
  uint32_t slots = 0;            ///< active length afterwards, the incoming token included
  Vector<SlotMove> moves;        ///< by unit, then by source
  Vector<uint32_t> unit_begin;   ///< [units + 1]: where each unit's moves begin
  Vector<uint32_t> incoming;     ///< [units]: the slot left open for it, in the table afterwards
  uint64_t moves_bound = 0;      ///< fewest moves of any plan; == moves.size()
  uint64_t free_tail_bound = 0;  ///< the same if the last block needed not be dense: smaller

  bool keeps_order = false;

  /// True if no block changes its place: only `moves` change what lies where.
  bool KeepsOrder() const { return keeps_order; }
};

struct PlanInput {
  std::span<const LiveSet> units;       ///< >= 1, of equal block_size, slots and count
  std::span<const BlockUse> uses = {};  ///< [blocks]; empty: all kOwn
  uint32_t incoming = 0;  ///< 1: one more token will be written into the slot left open
};

/// Decides which blocks of a sequence stay and fills their holes, in the fewest moves.
///
/// With L live tokens (and `incoming` ones) k = ceil(L / B) blocks stay, dense but for the tail's
/// end: r = L - (k - 1) B slots. The kept blocks are common to all units, so the sums over the
/// units of occupancy o and of p = popcount(first r slots) decide:
///     moves_bound = units * L - max over tail t of (sum of the k - 1 largest o besides t + p_t)
/// A block that may not be written stays only where nothing in it would be written; the others of
/// that kind are forced out, to fresh blocks where there is no room (the fewest of these, and then
/// the fewest moves). Among equals the blocks of lowest index stay, and the tail is the one of
/// highest index: so blocks keep their order, and a prefix that needn't change doesn't. Physical
/// ids decide nothing: the layout is a function of the live sets alone.
///
/// Sources are live and destinations dead slots, so the moves are disjoint: one parallel batch
/// without scratch. Pure; keeps its buffers and those of the plan: no allocation in steady state.
class RelocationPlanner {
 public:
  explicit RelocationPlanner(Memory memory = nullptr)
      : keys_(memory), histogram_(memory), firsts_(memory), keep_(memory) {}

  /// Fills `plan`. O(blocks * units + block_size * units + moves).
  void Plan(const PlanInput& input, RelocationPlan& plan);

  /// Frees as many blocks as at most `moves_max` moves can, emptiest first, and leaves the other
  /// holes where they are: only for a sequence whose dead slots are masked, or may linger. Blocks
  /// of other uses than kOwn stay as they are. plan.slots is then the span of what is kept.
  /// REQUIRES: no incoming token. O(blocks (log blocks + units) + moves); allocates.
  void PlanPartial(const PlanInput& input, uint64_t moves_max, RelocationPlan& plan);

  // Plan's two halves, for measurements.
  /// Everything but `moves`, `unit_begin` and `incoming`.
  void Decide(const PlanInput& input, RelocationPlan& plan);
  /// REQUIRES: `plan` is Decide's of the same input.
  void Emit(const PlanInput& input, RelocationPlan& plan);

 private:
  struct Top {               // the n fullest keepers, ties to the lowest index
    uint32_t count = 0;      // n
    uint32_t threshold = 0;  // key of the least full among them
    uint32_t ties = 0;       // how many with that key belong to them, the first ones
    uint64_t sum = 0;        // of their occupancies
  };
  struct Tail {
    uint32_t block = 0;  // == blocks: a fresh one
    uint64_t kept = 0;   // tokens that need not move
  };

  void MakeKeys(const PlanInput& input, uint32_t blocks);
  void CountKeys(uint32_t range);
  Top FindTop(uint32_t n) const;
  Tail FindTail(const PlanInput& input, const Top& others, const Top& all, uint32_t first);
  void Split(const Top& top, uint32_t tail, uint32_t stay, RelocationPlan& plan);
  void Drain(const PlanInput& input, uint64_t moves_max, RelocationPlan& plan);
  void EmitPartial(const PlanInput& input, RelocationPlan& plan) const;
  void MarkKept(const RelocationPlan& plan, uint32_t size);
  SlotMove* EmitUnit(const LiveSet& live, uint32_t unit, const RelocationPlan& plan,
                     SlotMove* from) const;

  // [blocks] occupancy, summed over units, + 1; or 0 where it can't stay as a full block
  Vector<uint32_t> keys_;
  Vector<uint32_t> histogram_;  // of keys_
  Vector<uint32_t> firsts_;     // [blocks] popcount of the first slots, summed over units
  Vector<uint64_t> keep_;       // bit per slot: in a kept block, below the active length
  uint32_t keepers_ = 0;        // keys that are not 0
};

}  // namespace hidane::vtoken
