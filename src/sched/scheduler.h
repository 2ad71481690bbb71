#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "sched/ghost_set.h"
#include "sched/kv_cache.h"
#include "sched/plan_step.h"

namespace hidane::sched {

struct SchedulerOptions {
  uint32_t kv_blocks = 0;           ///< >= 1
  uint32_t block_size = 16;         ///< slots in a block; >= 1
  uint32_t tokens_max = 512;        ///< of a step; >= 1
  uint32_t seqs_max = 64;           ///< running at once; >= 1. At most tokens_max of them run
  uint32_t ghost_blocks = 1 << 16;  ///< see GhostSet; >= 1
  Eviction eviction = Eviction::kReuse;
};

/// A sequence whose owner evicts tokens from its K/V. What is in its chain alone is ever shared.
struct Evictable {
  /// A prefix-cache hit covers at most so many tokens: the owner wants to see those behind.
  uint32_t hit_tokens_max = UINT32_MAX;
};

/// One live sequence, as it stands between two steps. Its tokens are its owner's.
///
/// Two lengths: `computed` counts tokens of the stream, which is what prompts, hits, chunks and
/// limits are about; `active()` counts the slots that attention reads, which is what blocks are
/// about. They differ by the tokens that were evicted.
struct SeqState {
  SeqId id;
  std::vector<Sha256Digest> chain;  ///< names of its first full blocks; the others have none
  std::vector<BlockId> table;       ///< block table; empty while waiting
  uint32_t prompt_tokens = 0;
  uint32_t tokens = 0;              ///< known: the prompt, then what was generated
  uint32_t computed = 0;            ///< leading tokens whose K/V were computed
  uint32_t evicted = 0;             ///< of these, whose K/V lie in the table no more
  uint32_t slots_max = UINT32_MAX;  ///< active() comes to no more than this, says its owner
  uint32_t cached_tokens = 0;       ///< of the prompt, by the hit of its first admission
  uint32_t found_blocks = 0;        ///< leading blocks whose contents were published before it came
  uint32_t admissions = 0;          ///< 0: never ran; each preemption adds one more
  uint32_t prefill_end = 0;         ///< tokens known at the last admission
  uint32_t ghost_end = 0;           ///< of them, those up to here were held before that
  bool running = false;
  bool publishes =
      true;  ///< false: the cache was reset under it, it shares nothing until readmitted
  std::optional<Evictable> evictable{};

  uint32_t active() const { return computed - evicted; }
};

/// The K/V of a whole block, to be copied into another.
struct BlockCopy {
  BlockId from, to;
};

/// What a step computed, in tokens.
struct StepTally {
  uint32_t prefill = 0;  ///< known when their sequence was admitted; recomputation included
  uint32_t decode = 0;
  uint32_t recomputed = 0;  ///< of `prefill`: in blocks that this engine once held
  uint32_t total() const { return prefill + decode; }
};

/// Which sequences hold which KV blocks, and which tokens the next step computes. It counts tokens
/// and compares the names of blocks; contents are its owner's, who names the blocks (an engine by
/// BlockDigester, a simulator as it likes). The owner turns the crank:
///
///   Add / Remove ─> Plan ─> Commit ─> (the model writes K/V of plan.run) ─> Complete ─> Append ─┐
///        ^─────────────────────────────────────────────────────────────────────────────────────┘
///
/// Plan decides and changes nothing; Commit moves blocks; Complete publishes the blocks that
/// became full and have a name. Invariants, between any two calls:
///   I1  a block's references = the tables it stands in; a block that stands in two is full and
///       never written;
///   I2  a running table covers all tokens known at admission, less the evicted ones, a waiting
///       one is empty;
///   I3  at least the last token of a sequence is not computed;
///   I4  a preempted sequence keeps `computed` if it is evictable: its owner saves the K/V of its
///       active slots before Commit and brings them back, into the new table, after the Commit
///       that admits it. Any other is computed again.
/// A step costs O(running), an admission O(blocks). Pure, one thread. Not a queue with a bound:
/// that is the owner's.
class Scheduler {
 public:
  explicit Scheduler(const SchedulerOptions& options);

  /// `chain`: the names of the prompt's full blocks; it may end early, or be empty, and then the
  /// blocks after it are never shared. Equal names mean equal K/V.
  /// REQUIRES: `id` >= 1 and greater than all before; 1 <= tokens, and Fits(prompt + what will be
  /// appended); chain.size() <= tokens / block_size.
  void Add(SeqId id, uint32_t prompt_tokens, std::vector<Sha256Digest> chain,
           std::optional<Evictable> evictable = std::nullopt);
  /// Finished or cancelled: releases all blocks, which stay published. False: no such sequence.
  /// REQUIRES: not between Commit and Complete.
  bool Remove(SeqId id);
  /// A second sequence in the state of `parent`, for another answer to its prompt. They share the
  /// blocks in use but `written`, those table blocks that the next token's K/V go into: `id` gets
  /// copies of these, which the owner makes before the next Plan. Nullopt, and it waits as if it
  /// had been preempted, when `parent` does, or sequences or blocks would be too many. It counts as
  /// admitted, and its hit as its parent's. Costs O(blocks).
  /// REQUIRES: `parent` is live, and all its tokens are computed; `id` > `parent`, and a new one;
  /// `written` ascends, and holds the last block in use unless that is full; not between Commit
  /// and Complete.
  std::optional<std::vector<BlockCopy>> Fork(SeqId parent, SeqId id,
                                             std::span<const uint32_t> written);
  /// One generated token, and where it fills a block, that block's name. REQUIRES: all tokens of
  /// `id` are computed, or it is a fork that waits; `filled` only if the token fills a block and
  /// those before it have names.
  void Append(SeqId id, const std::optional<Sha256Digest>& filled = std::nullopt);

  /// After an eviction from a running sequence: its live tokens lie in `table`, densely. Its blocks
  /// were exchanged through cache(). `slots_max`: what its active slots come to at most before the
  /// owner evicts again; while its blocks hold that many, no headroom is kept free for it. If it is
  /// wrong, somebody is preempted. REQUIRES: evictable; `table` covers the active slots, and
  /// between Commit and Complete those of the step too; the caller moved the references; `evicted`
  /// not less than before.
  void Evict(SeqId id, std::span<const BlockId> table, uint32_t evicted,
             uint32_t slots_max = UINT32_MAX);

  /// A running sequence gives its blocks back and waits, as if it had been preempted (I4).
  /// REQUIRES: running; not between Commit and Complete.
  void Preempt(SeqId id);
  /// By Commit or Preempt, so far.
  uint64_t preemptions() const { return preemptions_; }

  StepPlan Plan() const;
  /// REQUIRES: `plan` is Plan()'s answer and nothing has changed since.
  void Commit(const StepPlan& plan);
  /// REQUIRES: `plan` was committed and computed.
  StepTally Complete(const StepPlan& plan);

  /// Forgets every published block and what was once held. Running sequences keep their blocks.
  void ResetPrefixCache();

  /// True if a sequence of `tokens` can run alone.
  bool Fits(uint64_t tokens) const { return BlocksOf(tokens) <= options_.kv_blocks; }
  const SeqState& state(SeqId id) const { return *seqs_.at(id); }  ///< REQUIRES: live
  uint32_t running() const { return static_cast<uint32_t>(running_.size()); }
  uint32_t waiting() const { return static_cast<uint32_t>(waiting_.size()); }
  const KvCache& cache() const { return cache_; }
  KvCache& cache() { return cache_; }  ///< for evictions; else the scheduler's alone

 private:
  uint32_t BlocksOf(uint64_t tokens) const {
    return static_cast<uint32_t>((tokens + options_.block_size - 1) / options_.block_size);
  }
  // Blocks of a prefix-cache hit: never the last token, whose logits are wanted.
  std::span<const Sha256Digest> HitMax(const SeqState& seq) const;
  std::vector<RunningSeq> RunningViews() const;
  WaitingSeq View(const SeqState& seq) const;
  void Cover(SeqState& seq, uint32_t slots);
  std::vector<BlockCopy> Share(const SeqState& parent, SeqState& fork,
                               std::span<const uint32_t> written);
  void Admit(SeqState& seq);
  void Leave(SeqState& seq);
  void PublishFilled(SeqState& seq, uint32_t computed_before);

  SchedulerOptions options_;
  KvCache cache_;
  GhostSet ghost_;
  boost::unordered_flat_map<SeqId, std::unique_ptr<SeqState>, std::hash<SeqId>> seqs_;
  SeqId last_;  // that was added, forks aside
  uint64_t preemptions_ = 0;
  // Each sequence stands in one of these, by arrival.
  std::vector<SeqState*> running_;
  std::deque<SeqState*> waiting_;
};

}  // namespace hidane::sched
