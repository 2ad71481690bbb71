#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "engine/engine.h"
#include "engine/eviction_stats.h"
#include "engine/kv_mover.h"
#include "engine/policy_sequence.h"
#include "model/model.h"
#include "sched/scheduler.h"
#include "vtoken/epoch.h"

namespace hidane::engine {

/// The engine loop's part for sequences under an eviction policy. In a step, in this order:
///
///   Join ─> Plan ─> Save ─> (Commit) ─> Restore ─> Ask ─> (Forward, Complete) ─> Run
///     ^──────────────── moves run meanwhile, beside (sample) ────────────────────────┘
///
/// An eviction becomes visible at Join, together with its repair; nothing reads the table between.
/// Engine thread only. With no such sequence every call is one comparison.
class Evictor {
 public:
  Evictor(model::Model& model, sched::Scheduler& scheduler, const Clock& clock);
  ~Evictor();

  /// A sequence enters, before Scheduler::Add. REQUIRES: CheckKvPolicy has passed.
  sched::Evictable Add(SeqId id, const KvPolicy& policy, uint32_t prompt_tokens, uint64_t seed);
  /// After Scheduler::Fork has made `forks` of `parent`. A fork that waits gets the K/V as they are
  /// now; all that wait share them. No-op for other sequences. REQUIRES: joined, and not run since.
  void Fork(SeqId parent, std::span<const SeqId> forks);
  /// Before Scheduler::Remove. No-op for other sequences.
  void Remove(SeqId id);

  void Join();
  /// The scheduler's plan; where it lacks blocks, dead slots give theirs back first.
  sched::StepPlan Plan();
  /// Sequences that evict in masked or lazy mode give back the blocks that their dead slots hold,
  /// but those whose tokens would have to be copied to blocks that nobody has. False: none did.
  /// All of them, not as many as are lacking: pressure seldom comes alone, dead slots are read (or
  /// skipped) at a cost until then, and nobody's answer hangs on who else was in the line.
  bool Reclaim();
  void Save(std::span<const SeqId> preempted);
  void Restore(std::span<const SeqId> admitted);
  void Ask(SeqId id, model::SeqSlice& slice);
  void Run(const sched::StepPlan& plan);

  /// Null if the sequence has no policy.
  const PolicySequence* Find(SeqId id) const;
  const EvictionStats& stats() const { return stats_; }

 private:
  class Timer;

  PolicySequence* Live(SeqId id);
  std::shared_ptr<const std::vector<std::byte>> RowsOf(const PolicySequence& seq, SeqId id);
  std::span<const BlockId> OthersPrompt(SeqId id, const PolicySequence& seq) const;
  bool Evict(SeqId id, PolicySequence& seq);
  std::vector<SeqId> Wasteful() const;
  void StartMoves();
  void FinishMoves();
  void SwapOutStalled();

  model::Model& model_;
  sched::Scheduler& scheduler_;
  const Clock& clock_;
  std::unordered_map<std::string, std::unique_ptr<PolicyKit>> kits_;
  std::unordered_map<SeqId, std::unique_ptr<PolicySequence>> seqs_;
  std::unique_ptr<KvMover> mover_;  // from the first such sequence on
  class SharedPrompt;
  std::unique_ptr<SharedPrompt> pool_;
  vtoken::Epoch epoch_;
  vtoken::Fence fence_;
  std::vector<SeqId> evicting_;  // in the epoch
  std::vector<SeqId> stalled_;
  EvictionStats stats_;
};

}  // namespace hidane::engine
