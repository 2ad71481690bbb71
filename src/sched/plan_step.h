#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"

namespace hidane::sched {

/// A sequence that holds KV blocks, as the planner sees it.
struct RunningSeq {
  SeqId id;
  uint32_t tokens_left = 1;    ///< known and not computed, >= 1; 1 = decode (or a prompt's end)
  uint32_t blocks_wanted = 0;  ///< 0 or 1, to compute its next token
  bool grows = true;           ///< it may come to want more blocks than it has
  /// What its preemption frees: blocks that only it holds. Read only when the running sequences
  /// together want more blocks than are free.
  uint32_t blocks_given = 0;
  /// The next block that its prefill fills, null when that has no name or it decodes.
  const Sha256Digest* computes = nullptr;
};

/// A sequence that holds none: new, or preempted.
struct WaitingSeq {
  SeqId id;
  uint32_t tokens_left = 1;  ///< after the prefix-cache hit, >= 1
  uint32_t blocks_wanted =
      1;  ///< free blocks it takes: new ones, and those of its hit that lie free
  /// The first block it has to compute, null when that has no name.
  const Sha256Digest* computes = nullptr;
  bool waits_for_it = false;  ///< it would be a hit, if somebody else computed it
};

/// The next waiting sequence in arrival order; nullopt: no more. A look costs a search for its
/// hit, so the planner looks no further than it can admit.
using NextWaiting = std::function<std::optional<WaitingSeq>()>;

struct StepBudget {
  uint32_t tokens_max;  ///< >= 1
  uint32_t seqs_max;    ///< >= 1, <= tokens_max, so that decodes leave room for a prefill
  uint32_t blocks_free;
};

/// What the next step does, in this order.
struct StepPlan {
  struct Item {
    SeqId id;
    uint32_t n_tokens;  ///< >= 1; 1 = decode, more = a prefill chunk
  };
  std::vector<SeqId> preempt;  ///< give their blocks back and wait anew, youngest first
  std::vector<SeqId> admit;    ///< take their hit and all blocks of their tokens, oldest first
  std::vector<Item> run;       ///< decodes, then prefill chunks, each in arrival order
  bool lacks_blocks = false;   ///< with more free blocks it would preempt less, or admit more
  bool empty() const { return run.empty() && preempt.empty(); }
};

/// Decode first, then prefill chunks of running sequences, then of waiting ones, all in arrival
/// order, until the token budget is spent.
///
/// - *Memory.* A waiting sequence is admitted when the blocks of all its known tokens are free and
///   one more per running sequence that grows: a prefill never runs dry and growth does not preempt
///   at once.
///   The oldest that doesn't fit holds back all behind it. When a running sequence can't grow, the
///   youngest is preempted, for recomputation; the oldest never is, so work always goes on
///   (REQUIRES: each sequence fits the memory alone).
/// - *Single flight.* A waiting sequence whose next block a running one is just computing is
///   passed over until that block is a hit. REQUIRES: hits are maximal, so that two sequences can
///   only meet in the first block that both lack.
/// Pure: no clock, no I/O, no engine types; the simulator calls this very function. O(running +
/// looks * prefills).
StepPlan PlanStep(std::span<const RunningSeq> running, const NextWaiting& next_waiting,
                  const StepBudget& budget);

}  // namespace hidane::sched
