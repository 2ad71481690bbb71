#include "engine/evictor.h"

#include <algorithm>

#include "base/assert.h"

namespace hidane::engine {

/// Adds the time of its life to `total`.
class Evictor::Timer {
 public:
  Timer(const Clock& clock, Duration& total) : clock_(clock), total_(total), start_(clock.Now()) {}
  ~Timer() { total_ += clock_.Now() - start_; }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  const Clock& clock_;
  Duration& total_;
  const TimePoint start_;
};

/// The scheduler's blocks, as an epoch sees them: those of a shared prompt look as if another
/// sequence held them too. Then survivors are copied out of them, and they stay in the prefix cache
/// for whoever brings that prompt next.
class Evictor::SharedPrompt final : public vtoken::BlockPoolAdapter {
 public:
  explicit SharedPrompt(sched::KvCache& cache) : cache_(cache) {}

  /// REQUIRES: `blocks` stays valid until the next call.
  void Protect(std::span<const BlockId> blocks) { protected_ = blocks; }

  Result<uint32_t> RefCount(BlockId block) const override {
    const bool kept = std::find(protected_.begin(), protected_.end(), block) != protected_.end();
    HIDANE_TRY(const uint32_t refs, cache_.RefCount(block));
    return kept ? std::max(refs, 2u) : refs;
  }
  Result<bool> Pinned(BlockId block) const override { return cache_.Pinned(block); }
  Result<BlockId> Allocate() override { return cache_.Allocate(); }
  Status Retain(BlockId block) override { return cache_.Retain(block); }
  Status Release(BlockId block) override { return cache_.Release(block); }
  Status Unpublish(BlockId block) override { return cache_.Unpublish(block); }

 private:
  sched::KvCache& cache_;
  std::span<const BlockId> protected_;
};

Evictor::Evictor(model::Model& model, sched::Scheduler& scheduler, const Clock& clock)
    : model_(model),
      scheduler_(scheduler),
      clock_(clock),
      pool_(std::make_unique<SharedPrompt>(scheduler.cache())),
      epoch_(*pool_) {}

Evictor::~Evictor() = default;

sched::Evictable Evictor::Add(SeqId id, const KvPolicy& policy, uint32_t prompt_tokens,
                              uint64_t seed) {
  if (mover_ == nullptr) mover_ = std::make_unique<KvMover>(model_);
  auto& kit = kits_[policy.name];
  if (kit == nullptr) kit = std::make_unique<PolicyKit>(policy, model_);
  auto seq = std::make_unique<PolicySequence>(*kit, model_, policy, prompt_tokens, seed);
  const sched::Evictable evictable{seq->hit_tokens_max()};
  seqs_.emplace(id, std::move(seq));
  return evictable;
}

void Evictor::Fork(SeqId parent, std::span<const SeqId> forks) {
  PolicySequence* from = Live(parent);
  if (from == nullptr) return;
  auto rows = from->saved;
  for (const SeqId id : forks) {
    const sched::SeqState& state = scheduler_.state(id);
    const auto table = state.running ? std::span<const BlockId>(state.table) : from->kv().table();
    auto seq = std::make_unique<PolicySequence>(*from, table);
    if (!state.running) {
      if (rows == nullptr) rows = RowsOf(*from, parent);
      seq->saved = rows;
    }
    seqs_.emplace(id, std::move(seq));
  }
}

void Evictor::Remove(SeqId id) {
  if (seqs_.empty() || !seqs_.contains(id)) return;
  Join();
  std::erase(stalled_, id);
  seqs_.erase(id);
}

PolicySequence* Evictor::Live(SeqId id) {
  const auto at = seqs_.find(id);
  return at == seqs_.end() ? nullptr : at->second.get();
}

const PolicySequence* Evictor::Find(SeqId id) const {
  const auto at = seqs_.find(id);
  return at == seqs_.end() ? nullptr : at->second.get();
}

void Evictor::Join() {
  if (seqs_.empty()) return;
  const Timer timer(clock_, stats_.busy);
  FinishMoves();
  SwapOutStalled();
}

void Evictor::FinishMoves() {
  if (evicting_.empty()) return;
  {
    const Timer waiting(clock_, stats_.wait);
    HIDANE_ASSERT(mover_->Wait(fence_));
  }
  HIDANE_ASSERT(epoch_.Commit());
  if (epoch_.stats().victims > 0) ++stats_.epochs;
  stats_.evicted += epoch_.stats().victims;
  stats_.moves += epoch_.stats().moves;
  stats_.blocks_freed += epoch_.stats().blocks_freed;
  for (const SeqId id : evicting_) {
    PolicySequence& seq = *Live(id);
    const vtoken::SequenceKv& kv = seq.kv();
    std::erase_if(seq.others, [table = kv.table()](BlockId block) {
      return std::find(table.begin(), table.end(), block) == table.end();
    });
    scheduler_.Evict(id, kv.table(), kv.logical_length() - kv.active_length(), seq.slots_max());
  }
  evicting_.clear();
}

/// Their K/V leave the blocks as they are. They come back into blocks of their own, where an
/// eviction needs no further ones.
void Evictor::SwapOutStalled() {
  for (const SeqId id : stalled_) {
    PolicySequence& seq = *Live(id);
    seq.saved = RowsOf(seq, id);
    scheduler_.Preempt(id);
  }
  stalled_.clear();
}

sched::StepPlan Evictor::Plan() {
  sched::StepPlan plan = scheduler_.Plan();
  while (!seqs_.empty() && plan.lacks_blocks) {
    if (!Reclaim()) {
      if (Wasteful().empty() || plan.preempt.empty()) break;
      // Those who leave let go of shared blocks, which can be repaired in place then.
      Save(plan.preempt);
      for (const SeqId id : plan.preempt) scheduler_.Preempt(id);
    }
    plan = scheduler_.Plan();
  }
  return plan;
}

bool Evictor::Reclaim() {
  const Timer timer(clock_, stats_.busy);
  for (const SeqId id : Wasteful()) {
    if (epoch_.Repair(Live(id)->kv(), {})) evicting_.push_back(id);
  }
  if (evicting_.empty()) return false;
  StartMoves();
  FinishMoves();
  return true;
}

/// Running, and with blocks to win back; the oldest first.
std::vector<SeqId> Evictor::Wasteful() const {
  std::vector<SeqId> ids;
  for (const auto& [id, seq] : seqs_) {
    if (scheduler_.state(id).running && seq->kv().reclaimable_blocks() > 0) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

/// Null if it has none.
std::shared_ptr<const std::vector<std::byte>> Evictor::RowsOf(const PolicySequence& seq, SeqId id) {
  const sched::SeqState& state = scheduler_.state(id);
  if (state.computed == 0) return nullptr;
  ++stats_.saved;
  auto rows =
      std::make_shared<std::vector<std::byte>>(seq.slots() * model_.kv_layout().token_bytes());
  model_.SaveSlots(state.table, seq.slots(), *rows);
  return rows;
}

void Evictor::Save(std::span<const SeqId> preempted) {
  if (seqs_.empty()) return;
  const Timer timer(clock_, stats_.busy);
  for (const SeqId id : preempted) {
    if (PolicySequence* seq = Live(id)) seq->saved = RowsOf(*seq, id);
  }
}

void Evictor::Restore(std::span<const SeqId> admitted) {
  if (seqs_.empty()) return;
  const Timer timer(clock_, stats_.busy);
  for (const SeqId id : admitted) {
    PolicySequence* seq = Live(id);
    if (seq == nullptr || seq->saved == nullptr) continue;
    model_.LoadSlots(scheduler_.state(id).table, seq->slots(), *seq->saved);
    seq->saved = nullptr;
    seq->others.clear();
    seq->Follow(scheduler_.state(id).table, scheduler_.state(id).computed);
    if (!seq->stalled) continue;
    seq->stalled = false;
    HIDANE_ASSERT(Evict(id, *seq));
  }
  if (evicting_.empty()) return;
  StartMoves();
  FinishMoves();
}

void Evictor::Ask(SeqId id, model::SeqSlice& slice) {
  if (seqs_.empty()) return;
  const Timer timer(clock_, stats_.busy);
  if (PolicySequence* seq = Live(id)) seq->Ask(slice.n_tokens, slice);
}

/// Leading blocks that hold what others send too: what the request says is shared, and what was in
/// the cache before it came.
std::span<const BlockId> Evictor::OthersPrompt(SeqId id, const PolicySequence& seq) const {
  const uint32_t said = seq.config().shared_prompt / model_.kv_layout().block_size;
  const auto table = seq.kv().table();
  const size_t blocks = std::max(said, scheduler_.state(id).found_blocks);
  return table.first(std::min(blocks, table.size()));
}

/// False: blocks are missing.
bool Evictor::Evict(SeqId id, PolicySequence& seq) {
  const auto victims = seq.Choose();
  if (victims.empty()) return true;
  if (!seq.kv().evicted()) {
    const auto prompt = OthersPrompt(id, seq);
    seq.others.assign(prompt.begin(), prompt.end());
  }
  pool_->Protect(seq.others);
  Status evicted = epoch_.Evict(seq.kv(), victims, {.incoming = 1});
  pool_->Protect({});
  if (!evicted && !seq.others.empty()) evicted = epoch_.Evict(seq.kv(), victims, {.incoming = 1});
  if (!evicted) return false;
  evicting_.push_back(id);
  return true;
}

void Evictor::Run(const sched::StepPlan& plan) {
  if (seqs_.empty()) return;
  const Timer timer(clock_, stats_.busy);
  for (const sched::StepPlan::Item& item : plan.run) {
    PolicySequence* seq = Live(item.id);
    if (seq == nullptr) continue;
    const sched::SeqState& state = scheduler_.state(item.id);
    seq->Follow(state.table, state.computed);
    if (Evict(item.id, *seq)) continue;
    seq->stalled = true;
    stalled_.push_back(item.id);
  }
  if (!evicting_.empty()) StartMoves();
}

void Evictor::StartMoves() {
  HIDANE_ASSERT(epoch_.Seal());
  fence_ = *mover_->Start(epoch_.groups());
  const auto changes = epoch_.changes();
  for (size_t i = 0; i < changes.size(); ++i) Live(evicting_[i])->Relayout(changes[i]);
}

}  // namespace hidane::engine
