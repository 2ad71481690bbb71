#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "vtoken/block_pool_adapter.h"
#include "vtoken/live_set.h"
#include "vtoken/memory.h"
#include "vtoken/mode.h"
#include "vtoken/snapshot.h"
#include "vtoken/token_table.h"
#include "vtoken/unit.h"

namespace hidane::vtoken {

struct SequenceShape {
  uint32_t block_size = 16;        ///< B, slots in a block; 1..65535
  Scope scope = Scope::kSequence;  ///< what has its own victims
  uint32_t units = 1;              ///< UnitCount of the scope; 1..kUnitsMax
  Mode mode = Mode::kExact;
};

/// The K/V of one sequence: its block table, which token lies in which slot, and two lengths.
/// *Logical length*: tokens ever appended; positions and stop rules go by it. *Active length*:
/// table slots that attention reads. Without eviction the two are equal and the object is its
/// table and a few integers.
///
///     table    [ 7 ][ 3 ][ 9 ]          slot i stands in block table[i / B] at i % B
///     slots     0 1   2 3   4 .         active length 5
///     tokens    0 8   2 7   6           token(unit, slot); logical length 9
///
/// Tokens come by Reserve, the model's writes, Append; they go by an Epoch (epoch.h), the newest
/// ones also by Rollback. Invariant (kExact): every slot below active_length() is live, but while
/// a slot waits: then one per unit is open for the next token, and the table reaches one slot
/// further. The object holds one reference to each block of its table and gives it back by Release
/// alone. One thread. Errors change nothing unless they say so; nor does a std::bad_alloc out of
/// `memory`, which comes before a block is taken.
class SequenceKv {
 public:
  explicit SequenceKv(const SequenceShape& shape, Memory memory = nullptr);
  SequenceKv(SequenceKv&&) = default;
  SequenceKv& operator=(SequenceKv&&) = default;

  const SequenceShape& shape() const { return shape_; }
  /// Covers the active length and what is reserved.
  std::span<const BlockId> table() const { return table_; }
  uint32_t logical_length() const { return logical_; }
  uint32_t active_length() const { return active_; }
  uint32_t live_tokens() const { return live_.empty() ? active_ : live_[0].count(); }
  /// REQUIRES: unit < units, and the slot holds (or, waiting, will hold) a token.
  uint32_t token(uint32_t unit, uint32_t slot) const {
    return tokens_.empty() ? slot : tokens_[unit].token(slot);
  }
  /// False for a victim not yet won back, and for a slot that waits.
  bool live(uint32_t unit, uint32_t slot) const;
  /// Bit i: table slot 64 * word + i is active and dead, a victim not yet won back.
  /// REQUIRES: unit < units; no slot waits.
  uint64_t dead_slots(uint32_t unit, uint32_t word) const;
  /// Blocks that Epoch::Repair would win back; 0 in exact mode.
  uint32_t reclaimable_blocks() const { return BlocksOf(active_) - BlocksOf(live_tokens()); }
  /// Where the next token's rows go, [units] table slots: an epoch left these open. Empty: to slot
  /// active_length(), as always.
  std::span<const uint32_t> waiting_slots() const { return waiting_; }
  /// Leading table blocks that may be, or stay, published: no eviction has touched them, and none
  /// came before their K/V.
  uint32_t publishable_blocks() const { return intact_; }
  bool evicted() const { return !tokens_.empty() || !live_.empty(); }
  /// True after a fork, or a rollback into a block that others read: the next token would be
  /// written into it. Epoch::Repair first.
  bool must_own() const { return must_own_; }
  /// An epoch was aborted while it copied: only Release (or Epoch::Remove) is left.
  bool damaged() const { return damaged_; }
  bool in_epoch() const { return in_epoch_; }

  /// Takes over blocks that the caller holds, whose first `tokens` slots are the tokens 0, 1, ...:
  /// a prefix-cache hit. kInvalidArgument: not new, or they don't fit.
  Status Adopt(std::span<const BlockId> blocks, uint32_t tokens);
  /// For a host that manages the blocks itself: the same slots lie in `blocks` now, which it holds
  /// in this object's name; more of them than before, or others after a swap. Reserve, Trim and
  /// Release are the host's then. kInvalidArgument when they don't cover the slots in use, or in an
  /// epoch.
  Status SetTable(std::span<const BlockId> blocks);
  /// Makes the table cover `n` tokens more than are active. kResourceExhausted when blocks are
  /// missing; kInvalidArgument if must_own(), or a slot waits and n != 1.
  Status Reserve(BlockPoolAdapter& pool, uint32_t n);
  /// Gives back the blocks behind those that the active tokens need.
  Status Trim(BlockPoolAdapter& pool);
  /// `n` tokens were (or will be, before anything reads them) written behind the others, or one
  /// into the slot that waits. REQUIRES nothing of their bytes. kInvalidArgument when the table
  /// doesn't cover them, or as Reserve.
  Status Append(uint32_t n);
  /// Tokens that may be rolled back: those since the last epoch, fork or adoption.
  uint32_t rollback_max() const { return appended_; }
  /// Forgets the newest `n` tokens, which were speculative, and trims. kInvalidArgument past
  /// rollback_max().
  Status Rollback(BlockPoolAdapter& pool, uint32_t n);
  /// A second sequence in the same state. It shares every block in use; whichever writes first
  /// copies (must_own). On an error no reference is taken.
  Result<SequenceKv> Fork(BlockPoolAdapter& pool);
  /// For a host that manages the blocks itself: a second sequence in the same state, whose slots
  /// lie in `blocks`: copies of the OpenBlocks(), and the others of this table. Errors as SetTable.
  Result<SequenceKv> ForkAt(std::span<const BlockId> blocks);
  /// Table blocks in use that tokens to come are written into, ascending: the last, unless it is
  /// full, and those with a slot that waits.
  std::vector<uint32_t> OpenBlocks() const;
  /// Gives every block back, last one first, and becomes new. Goes on after a host's error and
  /// returns the first.
  Status Release(BlockPoolAdapter& pool);

  /// Everything but the bytes. The rows that belong to it, unit by unit, are those of the live
  /// slots in ascending order; the host copies them before it releases.
  Snapshot Export() const;
  /// A sequence in new blocks, with room for the snapshot's rows: row i of a unit goes to its i-th
  /// live slot. kResourceExhausted without blocks; kInvalidArgument for a snapshot of other units.
  static Result<SequenceKv> Import(const Snapshot& snapshot, const SequenceShape& shape,
                                   BlockPoolAdapter& pool, Memory memory = nullptr);

 private:
  friend struct EpochEntry;  // the only other one who changes a sequence

  SequenceKv(const SequenceKv&) = default;
  uint32_t BlocksOf(uint32_t slots) const {
    return (slots + shape_.block_size - 1) / shape_.block_size;
  }
  // Slots in use, the one that waits included.
  uint32_t spanned() const { return active_ + (waiting_.empty() ? 0 : 1); }
  Status Usable() const;
  Memory memory() const { return table_.get_allocator().memory(); }
  // New, without a block: as it was made.
  void Renew() { *this = SequenceKv(shape_, memory()); }
  void PlaceTokens(const Snapshot& snapshot);

  SequenceShape shape_;
  Vector<BlockId> table_;
  Vector<TokenTable> tokens_;  // [units]; empty: slot == token
  Vector<LiveSet> live_;       // [units]; empty: all live (but waiting_)
  Vector<uint32_t> waiting_;   // [units] or empty
  uint32_t logical_ = 0, active_ = 0, appended_ = 0;
  uint32_t intact_ = UINT32_MAX;     // see publishable_blocks
  uint32_t withdrawn_ = UINT32_MAX;  // blocks from here on are not published
  bool must_own_ = false, damaged_ = false, in_epoch_ = false;
};

}  // namespace hidane::vtoken
