#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engine/engine.h"
#include "model/model.h"
#include "vtoken/budget_controller.h"
#include "vtoken/epoch.h"
#include "vtoken/policy_run.h"
#include "vtoken/sequence_kv.h"
#include "vtoken/signal_store.h"

namespace hidane::engine {

/// A policy with what its runs need; serves all sequences under it.
struct PolicyKit {
  PolicyKit(const KvPolicy& config, const model::Model& model);

  std::unique_ptr<vtoken::Policy> policy;
  vtoken::PolicyTraits traits;
  vtoken::PolicyRunner runner;
};

/// One sequence under an eviction policy: where its tokens lie, what attention said of them, how
/// many may stay. The scheduler holds its blocks; this object follows its table.
class PolicySequence final : private vtoken::KeySource {
 public:
  /// REQUIRES: CheckKvPolicy(config) has passed; kit and model outlive it.
  PolicySequence(PolicyKit& kit, const model::Model& model, const KvPolicy& config,
                 uint32_t prompt_tokens, uint64_t seed);
  /// A fork, in the same state as `parent`. `table`: where its slots lie.
  PolicySequence(PolicySequence& parent, std::span<const BlockId> table);
  PolicySequence(const PolicySequence&) = delete;
  PolicySequence& operator=(const PolicySequence&) = delete;

  const KvPolicy& config() const { return config_; }
  vtoken::SequenceKv& kv() { return kv_; }
  const vtoken::SequenceKv& kv() const { return kv_; }
  /// Prompt tokens that a prefix-cache hit may cover.
  uint32_t hit_tokens_max() const;

  /// What the model gets for the next `n` tokens. Valid until the next call.
  void Ask(uint32_t n, model::SeqSlice& slice);
  /// The first `computed` tokens of the stream are computed; their slots lie in `table`.
  void Follow(std::span<const BlockId> table, uint32_t computed);
  /// If this is the moment: who goes, [units][n] table slots; empty if nobody.
  std::span<const uint32_t> Choose();
  /// What is kept by slot follows an epoch, before or after its Commit.
  void Relayout(const vtoken::EpochChange& change);

  /// K/V bytes of the slots in use, while it holds no blocks; forks may share them.
  std::shared_ptr<const std::vector<std::byte>> saved;
  /// Blocks in its table that are copied rather than changed: others send their contents too.
  std::vector<BlockId> others;
  /// Its victims could not be evicted for want of blocks: first thing when it runs again.
  bool stalled = false;

  /// Table slots that it comes to use at most before its next eviction and, under a cap, ever
  /// after; UINT32_MAX: no bound is known.
  uint32_t slots_max() const;
  /// Table slots in use, with the one that waits for the next token.
  uint32_t slots() const { return kv_.active_length() + (kv_.waiting_slots().empty() ? 0 : 1); }

 private:
  uint32_t head_dim() const override { return model_.info().head_dim; }
  uint32_t UnitOf(uint32_t layer_and_head) const;
  void HideDead(model::SeqSlice& slice);
  void ReadKeys(uint32_t layer, uint32_t kv_head, uint32_t slots, float* out) const override;
  vtoken::Lengths lengths() const {
    return {prompt_tokens_, kv_.logical_length(), kv_.live_tokens()};
  }

  PolicyKit& kit_;
  const model::Model& model_;
  const KvPolicy config_;
  const uint32_t prompt_tokens_;
  const uint64_t seed_;
  vtoken::SequenceKv kv_;
  vtoken::SignalStore store_;
  vtoken::BudgetController budget_;
  model::SlotSignals signals_;
  std::vector<uint32_t> write_slots_;  // [layers][kv_heads]
  std::vector<uint64_t> dead_;         // [layers][kv_heads][words]
  vtoken::Victims victims_;
};

}  // namespace hidane::engine
