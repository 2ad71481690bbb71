#pragma once
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/result.h"
#include "vtoken/epoch_entry.h"
#include "vtoken/memory.h"
#include "vtoken/move_executor.h"
#include "vtoken/relocation_planner.h"
#include "vtoken/sequence_kv.h"

namespace hidane::vtoken {

/// One sequence's part of an epoch, for whoever keeps data by slot.
struct EpochChange {
  const SequenceKv* seq;              ///< still as before; nullptr: removed meanwhile
  const RelocationPlan* plan;         ///< nullptr: victims were only marked
  std::span<const uint32_t> victims;  ///< [units][n] table slots before the plan, as given
  std::span<const BlockId> table;     ///< afterwards
};

/// What an epoch does.
struct EpochStats {
  uint32_t sequences = 0, victims = 0;  ///< victims: unit-tokens
  uint64_t moves = 0;                   ///< copied row sets, `moves_bound` and out-of-place ones
  uint64_t moves_bound = 0;
  uint32_t blocks_freed = 0, blocks_fresh = 0;
};

/// Eviction and its repair, for many sequences at once, as one transaction between two steps:
///
///     Evict / Repair ...  ─>  Seal  ─>  [copy groups()]  ─>  fence  ─>  Commit
///          reserve            │ published blocks            │        ─>  Abort
///                             │ that will change            │
///                             │ are withdrawn               │ tables, lengths, blocks
///
///     for (each sequence over its cap) epoch.Evict(kv, victims, {.incoming = decodes ? 1 : 0});
///     epoch.Seal();                                  fence = mover.Start(epoch.groups());
///     ... sample, stream, schedule nothing yet ...
///     mover.Wait(fence);  epoch.Commit();            the next step reads the new tables
///
/// - Until Commit each sequence is as it was, and may not be changed but by Remove: its sources
///   stay where they are, and blocks that leave are not given back before the copy is done.
/// - The repair is the cheapest that is exact: the incoming token takes a dead slot (no copy),
///   then the fewest moves into holes; blocks that others read are never written (Placement).
/// - kMasked and kLazy sequences are only marked by Evict; Repair plans for them.
/// - Blocks of one reference are unpublished before they change, last one first, with those behind
///   them. A block that another sequence holds stays published as it is. The host should not
///   assume that who holds a published block holds those before it: a sequence that copied out of
///   a shared block may still share a later one.
/// Keeps its buffers: no allocation in steady state. One thread; never copies a byte itself.
/// std::bad_alloc comes out of Evict, Repair and Seal alone, and then they have done nothing.
class Epoch {
 public:
  using Options = RepairOptions;

  explicit Epoch(BlockPoolAdapter& pool, Memory memory = nullptr)
      : pool_(pool),
        planner_(memory),
        entries_(memory),
        groups_(memory),
        changes_(memory),
        scratch_(memory) {}

  /// `victims`: [units][n] table slots, the same number n of each unit. On an error `seq` is not in
  /// the epoch and no block was taken: kInvalidArgument for a victim that is not a live slot or
  /// comes twice, a sequence already in an epoch, a sealed epoch; kResourceExhausted when an
  /// out-of-place repair lacks blocks.
  Status Evict(SequenceKv& seq, std::span<const uint32_t> victims, const Options& options);
  /// No victims: closes a slot that still waits, wins back what was marked, and makes a shared
  /// block that the next token would be written into the sequence's own. Errors as Evict.
  Status Repair(SequenceKv& seq, const Options& options);

  /// Ends the planning and withdraws what will change from the prefix cache. On a host's error the
  /// epoch is as aborted.
  Status Seal();
  bool sealed() const { return sealed_; }
  /// After Seal: what to copy. Stays valid until Commit or Abort.
  std::span<const MoveGroup> groups() const { return groups_; }
  std::span<const EpochChange> changes() const { return changes_; }

  /// A sequence of the epoch ends while it is open: its blocks are given back at Commit or Abort.
  /// It becomes new, and may be destroyed.
  void Remove(SequenceKv& seq);

  /// REQUIRES: sealed(), and every move of groups() is done. Goes on after a host's error (a block
  /// it won't take back) and returns the first.
  Status Commit();
  /// Nothing happened: every sequence, reference and block is as before. After Seal, a sequence
  /// with moves into its own blocks may have lost victims that nobody can bring back, so it is
  /// damaged(): recompute it, or restore a snapshot. (Withdrawn blocks stay unpublished.)
  Status Abort();

  /// Of the open epoch, so far; sequences that were removed don't count.
  EpochStats planned() const;
  /// Of the last Commit.
  const EpochStats& stats() const { return stats_; }

 private:
  EpochEntry& Next();
  Status Stage(SequenceKv& seq, std::span<const uint32_t> victims, const Options& options,
               bool plan);
  Status End(bool commit);

  BlockPoolAdapter& pool_;
  RelocationPlanner planner_;
  Vector<EpochEntry> entries_;  // the first used_ are of this epoch
  size_t used_ = 0;
  bool sealed_ = false;
  Vector<MoveGroup> groups_;
  Vector<EpochChange> changes_;
  EpochStats stats_;
  Vector<uint32_t> scratch_;
};

}  // namespace hidane::vtoken
