#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "model/model.h"
#include "vtoken/budget_controller.h"
#include "vtoken/live_set.h"
#include "vtoken/policy_run.h"
#include "vtoken/relocation_planner.h"
#include "vtoken/signal_store.h"

namespace hidane::bench {

/// What is done with the victims.
enum class Eviction : uint8_t {
  kNone,     ///< full KV
  kMasked,   ///< dead slots stay, a mask hides them: the reference, scalar kernels only
  kVirtual,  ///< dead slots are filled by moves, and the kernels read fewer
};

/// The victims of one sequence, run by run, so that another can lose the same.
struct RecordedRun {
  uint32_t logical_length = 0, per_unit = 0;
  std::vector<uint32_t> positions = {};  ///< [units][per_unit]
};
using VictimTrace = std::vector<RecordedRun>;

/// One sequence on a real model, its policy beside it, without an engine around: what an engine
/// does for each sequence, in the order in which it does it. A copy shares the model's memory.
class ModelSequence {
 public:
  /// `policy` may be null (full KV) and outlives the object. REQUIRES: the model has room for
  /// tokens_max tokens and a block, and serves one sequence at a time.
  ModelSequence(model::Model& model, vtoken::Policy* policy, uint32_t tokens_max);

  /// The prompt, in chunks; nothing is evicted yet. `warm`: K/V of its first `warm_tokens` tokens,
  /// of SaveKv; used up to the policy's origin, as a prefix-cache hit is. Returns the last token's
  /// logits.
  std::span<const float> Prefill(std::span<const TokenId> prompt,
                                 std::span<const std::byte> warm = {}, uint32_t warm_tokens = 0);
  std::vector<std::byte> SaveKv() const;
  /// Goes on from here with what SaveKv gave, perhaps as a copy, perhaps in another model of the
  /// same file and KV layout. `replay`: victims instead of the policy's own; outlives the object.
  void Resume(model::Model& model, std::span<const std::byte> kv, Eviction eviction,
              const vtoken::BudgetConfig& budget, const VictimTrace* replay = nullptr);
  /// Runs the policy if it is due, then computes one token more. Returns its logits.
  std::span<const float> Decode(TokenId token);

  /// Puts the tokens into a random order of slots, the same in all layers and heads.
  void Shuffle(uint64_t seed);

  /// What the policy would take now, if `keep` tokens stayed.
  vtoken::Victims Choose(uint32_t keep);
  const VictimTrace& trace() const { return trace_; }
  uint32_t live() const { return live_; }
  uint32_t blocks() const;

 private:
  void Extend(uint32_t n);
  std::span<const float> Forward(std::span<const TokenId> tokens);
  void Evict();
  void Hide(std::span<const uint32_t> victims);
  void Repair(std::span<const uint32_t> victims);
  uint32_t units() const { return static_cast<uint32_t>(tokens_.size()); }

  model::Model* model_;
  vtoken::Policy* policy_;
  vtoken::PolicyTraits traits_;
  vtoken::HeadShape shape_;
  vtoken::BudgetController budget_;
  vtoken::SignalStore signals_;
  std::optional<vtoken::PolicyRunner> runner_;
  vtoken::RelocationPlanner planner_;
  const VictimTrace* replay_ = nullptr;
  VictimTrace trace_;
  Eviction eviction_ = Eviction::kNone;
  uint32_t tokens_max_, prompt_ = 0, logical_ = 0, live_ = 0, slots_ = 0;
  std::vector<BlockId> table_, free_;
  std::vector<std::vector<uint32_t>> tokens_;  // [units][slots_]: position, or kDead
  std::vector<uint64_t> dead_;                 // [layers][kv_heads][words]; empty: none
  std::vector<float> logits_;
};

}  // namespace hidane::bench
