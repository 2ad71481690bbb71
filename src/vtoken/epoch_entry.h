#pragma once
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/result.h"
#include "vtoken/block_pool_adapter.h"
#include "vtoken/live_set.h"
#include "vtoken/memory.h"
#include "vtoken/relocation_planner.h"
#include "vtoken/sequence_kv.h"

namespace hidane::vtoken {

/// Where a plan may put the tokens of blocks that others read.
enum class Placement : uint8_t {
  /// Plan as if every block were the sequence's own, then put a fresh block in the place of each
  /// that would be written and may not be. The layout, hence the order in which attention sums, is
  /// a function of the token stream alone: the same with a cold and a warm prefix cache.
  kStable,
  /// Force such blocks out first (BlockUse): fewer moves and fresh blocks, a layout that depends
  /// on who else holds the prefix.
  kFewestMoves,
};

struct RepairOptions {
  /// 1: the sequence's next step appends exactly one token, which takes a slot left open
  /// (SequenceKv::waiting_slots) rather than one behind the others.
  uint32_t incoming = 0;
  Placement placement = Placement::kStable;
  /// Masked and lazy sequences: a repair that takes more moves frees what so many can, and leaves
  /// the other dead slots for later.
  uint32_t moves_max = UINT32_MAX;
};

/// One sequence's part of an Epoch, from staging to its end: what will die, the plan, and the
/// blocks that the plan takes and gives. Kept and reused by its epoch. Internal to it. All memory
/// is taken by Stage and Settle, before a block is: std::bad_alloc leaves nothing behind.
struct EpochEntry {
  explicit EpochEntry(Memory memory)
      : victims(memory),
        live(memory),
        plan(memory),
        table(memory),
        moves(memory),
        uses_(memory),
        written_(memory),
        home_(memory),
        taken_(memory),
        left_(memory),
        orphaned_(memory),
        tokens_(memory),
        holes_(memory) {}

  SequenceKv* seq = nullptr;  ///< nullptr once removed
  Vector<uint32_t> victims;
  Vector<LiveSet> live;  ///< [units] with the victims dead
  bool planned = false;
  RelocationPlan plan;
  Vector<BlockId> table;       ///< after the plan
  Vector<SlotMove> moves;      ///< physical: the plan's, and copies out of blocks others read
  uint32_t first_changed = 0;  ///< table block: those before it keep place and contents
  bool loses_victims = false;  ///< moves overwrite what would be read again after an abort

  /// kInvalidArgument as Epoch::Evict says; the sequence is only read.
  Status Stage(SequenceKv& sequence, std::span<const uint32_t> slots);
  /// Plans, allocates what the plan needs and writes `moves`. On an error nothing is taken.
  Status Settle(RelocationPlanner& planner, BlockPoolAdapter& pool, const RepairOptions& options);
  /// Takes the blocks that will change, and those behind them, out of the prefix cache.
  Status Withdraw(BlockPoolAdapter& pool);
  /// From now on the sequence is in the epoch.
  void Join() { seq->in_epoch_ = true; }
  /// Takes over what the sequence holds; it becomes new.
  void Orphan();

  // The end: each goes on after a host's error and returns the first.
  Status Commit(BlockPoolAdapter& pool, Vector<uint32_t>& scratch);
  Status Abort(BlockPoolAdapter& pool, bool sealed);

  uint32_t blocks_taken() const { return static_cast<uint32_t>(taken_.size()); }
  uint32_t blocks_left() const { return static_cast<uint32_t>(left_.size()); }

 private:
  Status FindUses(BlockPoolAdapter& pool);
  Status FindHomes(BlockPoolAdapter& pool);
  void MakeRoom();
  size_t MarkWritten();
  Status ReplaceFrozen(BlockPoolAdapter& pool);
  Status Take(BlockPoolAdapter& pool, BlockId& home);
  Status GiveBack(BlockPoolAdapter& pool, Vector<BlockId>& blocks);
  void CopyOut(uint32_t index, uint32_t width, BlockId to);
  void Place();
  uint32_t FindFirstChanged() const;
  Memory memory() const { return live.get_allocator().memory(); }
  bool KeepsSlots() const;
  void ApplyPlan(Vector<uint32_t>& scratch);
  void KeepHoles();

  Vector<BlockUse> uses_;      // [plan.blocks]
  bool partial_ = false;       // the plan leaves holes
  bool frozen_ = false;        // one of them is not kOwn
  Vector<uint8_t> written_;    // [plan.blocks] the repair or the next token writes what others read
  uint32_t withdrawn_ = 0;     // the sequence's, afterwards
  Vector<BlockId> home_;       // [plan.blocks + fresh] where a block's slots lie afterwards
  Vector<BlockId> taken_;      // allocated for this epoch
  Vector<BlockId> left_;       // leave the sequence at Commit, in this order
  Vector<BlockId> orphaned_;   // table of a removed sequence
  Vector<TokenTable> tokens_;  // for a sequence that has none yet; empty tables with room
  Vector<LiveSet> holes_;      // the sequence's live sets afterwards, if partial_
};

}  // namespace hidane::vtoken
