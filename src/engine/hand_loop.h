#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "engine/engine.h"
#include "engine/evictor.h"
#include "model/model.h"
#include "sched/scheduler.h"

/// For the bench: the engine's step turned by hand, each part of it timed.
namespace hidane::engine {

/// CPU time: the machine need not be quiet.
inline const Clock& g_cpu = ProcessCpuClock();

/// Memory without arithmetic.
class NoModel final : public model::Model {
 public:
  explicit NoModel(uint32_t kv_blocks) : kv_blocks_(kv_blocks) {
    info_.layers = info_.heads = info_.kv_heads = info_.vocab_size = 1;
    layout_ = {1, 1, 1, 16, 2};
  }
  const model::ModelInfo& info() const override { return info_; }
  const model::KvLayout& kv_layout() const override { return layout_; }
  uint32_t kv_blocks() const override { return kv_blocks_; }
  void Forward(const model::StepBatch&, std::span<float>) override {}
  void MoveRows(model::KvUnit, std::span<const model::RowMove>) override {}
  void SaveSlots(std::span<const BlockId>, uint32_t, std::span<std::byte>) const override {}
  void LoadSlots(std::span<const BlockId>, uint32_t, std::span<const std::byte>) override {}
  void ReadKeys(uint32_t, uint32_t, std::span<const BlockId>, uint32_t, uint32_t,
                std::span<float>) const override {}

 private:
  uint32_t kv_blocks_;
  model::ModelInfo info_{};
  model::KvLayout layout_;
};

struct StepCost {
  double seconds = 0, wait = 0, eviction = 0;
  uint32_t decoded = 0, running = 0;
  size_t preempted = 0;
  bool relocated = false;
  bool decode_only = false;
};

/// A model whose rows stay where they are: what moving them costs is the difference.
class Unmoving final : public model::Model {
 public:
  explicit Unmoving(model::Model& model) : model_(model) {}
  const model::ModelInfo& info() const override { return model_.info(); }
  const model::KvLayout& kv_layout() const override { return model_.kv_layout(); }
  uint32_t kv_blocks() const override { return model_.kv_blocks(); }
  void Forward(const model::StepBatch& batch, std::span<float> logits) override {
    model_.Forward(batch, logits);
  }
  void MoveRows(model::KvUnit, std::span<const model::RowMove>) override {}
  void SaveSlots(std::span<const BlockId> table, uint32_t n,
                 std::span<std::byte> out) const override {
    model_.SaveSlots(table, n, out);
  }
  void LoadSlots(std::span<const BlockId> table, uint32_t n,
                 std::span<const std::byte> in) override {
    model_.LoadSlots(table, n, in);
  }
  void ReadKeys(uint32_t layer, uint32_t head, std::span<const BlockId> table, uint32_t first,
                uint32_t n, std::span<float> out) const override {
    model_.ReadKeys(layer, head, table, first, n, out);
  }

 private:
  model::Model& model_;
};

/// What becomes of the blocks of masked victims.
enum class Blocks : uint8_t { kReclaimed, kHeld };

/// Sequences x scheduler x evictor x model, a step at a time.
class Loop {
 public:
  Loop(model::Model& model, const KvPolicy& policy, uint32_t chunk,
       Blocks blocks = Blocks::kReclaimed)
      : model_(model),
        policy_(policy),
        blocks_(blocks),
        scheduler_({.kv_blocks = model.kv_blocks(),
                    .block_size = model.kv_layout().block_size,
                    .tokens_max = chunk,
                    .seqs_max = 512}),
        evictor_(model, scheduler_, g_cpu) {}

  void Add(uint32_t prompt, uint32_t answer) {
    const SeqId id(next_++);
    std::optional<sched::Evictable> evictable;
    if (policy_.evicts()) evictable = evictor_.Add(id, policy_, prompt, 1);
    scheduler_.Add(id, prompt, {}, evictable);
    goals_[id] = prompt + answer;
    for (auto& tokens = tokens_[id]; tokens.size() < prompt + answer;)
      tokens.push_back(static_cast<TokenId>(rng_.Below(model_.info().vocab_size)));
  }
  bool idle() const { return goals_.empty(); }
  uint32_t live() const { return static_cast<uint32_t>(goals_.size()); }
  /// No sequence waits, and none is in its prompt.
  bool all_decode() const {
    return scheduler_.waiting() == 0 &&
           std::all_of(goals_.begin(), goals_.end(), [&](const auto& entry) {
             const auto& state = scheduler_.state(entry.first);
             return state.computed >= state.prompt_tokens;
           });
  }
  const EvictionStats& stats() const { return evictor_.stats(); }

  StepCost Step() {
    const EvictionStats before = evictor_.stats();
    const TimePoint start = g_cpu.Now();
    StepCost cost;
    evictor_.Join();
    const sched::StepPlan plan = blocks_ == Blocks::kHeld ? scheduler_.Plan() : evictor_.Plan();
    evictor_.Save(plan.preempt);
    scheduler_.Commit(plan);
    evictor_.Restore(plan.admit);
    Forward(plan);
    scheduler_.Complete(plan);
    evictor_.Run(plan);
    for (const auto& item : plan.run) Append(item.id, cost);
    cost.seconds = Seconds(g_cpu.Now() - start);
    cost.wait = Seconds(evictor_.stats().wait - before.wait);
    cost.eviction = Seconds(evictor_.stats().busy - before.busy);
    cost.relocated = evictor_.stats().epochs > before.epochs;
    cost.preempted = plan.preempt.size();
    cost.running = scheduler_.running();
    cost.decode_only = plan.run.size() == cost.decoded && plan.admit.empty();
    return cost;
  }

 private:
  void Forward(const sched::StepPlan& plan) {
    batch_.clear();
    slices_.clear();
    for (const auto& item : plan.run) {
      const sched::SeqState& seq = scheduler_.state(item.id);
      const auto from = tokens_.at(item.id).begin() + seq.computed;
      batch_.insert(batch_.end(), from, from + item.n_tokens);
      slices_.push_back({item.n_tokens, seq.computed, seq.active(), seq.table,
                         seq.computed + item.n_tokens == seq.tokens});
      evictor_.Ask(item.id, slices_.back());
    }
    const auto wanted = static_cast<size_t>(std::count_if(
        slices_.begin(), slices_.end(), [](const auto& slice) { return slice.want_logits; }));
    logits_.resize(wanted * model_.info().vocab_size);
    model_.Forward({batch_, slices_}, logits_);
  }
  void Append(SeqId id, StepCost& cost) {
    const sched::SeqState& seq = scheduler_.state(id);
    if (seq.computed < seq.tokens) return;
    ++cost.decoded;
    if (seq.tokens + 1 < goals_.at(id)) return scheduler_.Append(id);
    evictor_.Remove(id);
    scheduler_.Remove(id);
    goals_.erase(id);
    tokens_.erase(id);
  }

  model::Model& model_;
  const KvPolicy policy_;
  const Blocks blocks_;
  sched::Scheduler scheduler_;
  Evictor evictor_;
  Rng rng_{1};
  uint64_t next_ = 1;
  std::map<SeqId, uint32_t> goals_;
  std::map<SeqId, std::vector<TokenId>> tokens_;
  std::vector<TokenId> batch_;
  std::vector<model::SeqSlice> slices_;
  std::vector<float> logits_;
};

}  // namespace hidane::engine
