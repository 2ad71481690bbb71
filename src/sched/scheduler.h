#pragma once
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "sched/block_digest.h"
#include "sched/ghost_set.h"
#include "sched/kv_cache.h"
#include "sched/plan_step.h"

namespace hidane::sched {

struct SchedulerOptions {
  uint32_t kv_blocks = 0;     ///< >= 1
  uint32_t block_size = 16;   ///< slots in a block; >= 1
  uint32_t tokens_max = 512;  ///< of a step; >= 1
  uint32_t seqs_max = 64;     ///< running at once; >= 1. At most tokens_max of them run
  bool prefix_cache = true;
  uint32_t ghost_blocks = 1 << 16;  ///< see GhostSet; >= 1
};

/// One live sequence, as it stands between two steps.
struct SeqState {
  std::vector<TokenId> tokens;  ///< prompt, then what was generated
  std::vector<BlockId> table;   ///< block table; empty while waiting
  uint32_t prompt_tokens = 0;
  uint32_t computed = 0;       ///< leading tokens whose K/V lie in the table
  uint32_t cached_tokens = 0;  ///< of the prompt, by the hit of its first admission
  uint32_t admissions = 0;     ///< 0: never ran; each preemption adds one more
  bool running = false;
  bool ready() const { return computed + 1 == tokens.size(); }  ///< next step ends in logits

 private:
  friend class Scheduler;
  std::string salt;
  std::vector<Sha256Digest> chain;  // of the full blocks of tokens; empty without a prefix cache
  uint32_t prefill_end = 0;         // tokens known at the last admission
  uint32_t ghost_end = 0;           // tokens up to here were once held, [computed, ghost_end) again
};

/// What a step computed, in tokens.
struct StepTally {
  uint32_t prefill = 0;  ///< known when their sequence was admitted; recomputation included
  uint32_t decode = 0;
  uint32_t recomputed = 0;  ///< of `prefill`: in blocks that this engine once held
  uint32_t total() const { return prefill + decode; }
};

/// Which sequences hold which KV blocks, and which tokens the next step computes. The owner turns
/// the crank:
///
///   Add / Remove ─> Plan ─> Commit ─> (the model writes K/V of plan.run) ─> Complete ─> Append ─┐
///        ^─────────────────────────────────────────────────────────────────────────────────────┘
///
/// Plan decides and changes nothing; Commit moves blocks; Complete publishes the blocks that
/// became full. Invariants, between any two calls:
///   I1  a block's references = the tables it stands in; a block that stands in two is full,
///       published and never written;
///   I2  a running table covers all tokens known at admission, a waiting one is empty;
///   I3  at least the last token of a sequence is not computed.
/// Pure, one thread. Not a queue with a bound: that is the owner's.
class Scheduler {
 public:
  explicit Scheduler(const SchedulerOptions& options);

  /// REQUIRES: `id` is greater than all before; 1 <= tokens, and Fits(prompt + what will be
  /// appended).
  void Add(SeqId id, std::vector<TokenId> prompt, std::string_view salt);
  /// Finished or cancelled: releases all blocks, which stay published. False: no such sequence.
  /// REQUIRES: not between Commit and Complete.
  bool Remove(SeqId id);
  /// One generated token. REQUIRES: all tokens of `id` are computed.
  void Append(SeqId id, TokenId token);

  StepPlan Plan() const;
  /// REQUIRES: `plan` is Plan()'s answer and nothing has changed since.
  void Commit(const StepPlan& plan);
  /// REQUIRES: `plan` was committed and computed.
  StepTally Complete(const StepPlan& plan);

  /// Forgets every published block and what was once held. Running sequences keep their blocks.
  void ResetPrefixCache();

  /// True if a sequence of `tokens` can run alone.
  bool Fits(uint64_t tokens) const { return BlocksOf(tokens) <= options_.kv_blocks; }
  const SeqState& state(SeqId id) const { return seqs_.at(id); }        ///< REQUIRES: live
  const std::map<SeqId, SeqState>& sequences() const { return seqs_; }  ///< by arrival
  uint32_t running() const { return running_; }
  uint32_t waiting() const { return static_cast<uint32_t>(seqs_.size()) - running_; }
  const KvCache& cache() const { return cache_; }

 private:
  uint64_t BlocksOf(uint64_t tokens) const {
    return (tokens + options_.block_size - 1) / options_.block_size;
  }
  // Blocks of a prefix-cache hit: never the last token, whose logits are wanted.
  uint32_t HitMax(const SeqState& seq) const;
  RunningSeq View(SeqId id, const SeqState& seq) const;
  WaitingSeq WaitingView(SeqId id, const SeqState& seq) const;
  void Admit(SeqState& seq);
  void Leave(SeqState& seq);
  void PublishFilled(SeqState& seq, uint32_t computed_before);

  SchedulerOptions options_;
  KvCache cache_;
  GhostSet ghost_;
  BlockDigester digester_;
  std::map<SeqId, SeqState> seqs_;
  uint32_t running_ = 0;
  // Digests that a running sequence is going to publish before its prefill ends. Each has one
  // owner: whoever else needs one waits for it.
  boost::unordered_flat_set<Sha256Digest, DigestHash> in_flight_;
};

}  // namespace hidane::sched
