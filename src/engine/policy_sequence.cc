#include "engine/policy_sequence.h"

#include <algorithm>

#include "base/assert.h"
#include "base/rng.h"
#include "engine/kv_policy.h"
#include "vtoken/sequence_places.h"

namespace hidane::engine {
namespace {

vtoken::HeadShape ShapeOf(const model::ModelInfo& info) {
  return {info.layers, info.heads, info.kv_heads};
}

vtoken::SequenceShape SequenceShapeOf(vtoken::Scope scope, vtoken::Mode mode,
                                      const model::Model& model) {
  const model::ModelInfo& info = model.info();
  return {.block_size = model.kv_layout().block_size,
          .scope = scope,
          .units = vtoken::UnitCount(scope, info.layers, info.kv_heads),
          .mode = mode};
}

vtoken::SequenceKv Forked(vtoken::SequenceKv& kv, std::span<const BlockId> table) {
  auto fork = kv.ForkAt(table);
  HIDANE_ASSERT(fork);
  return *std::move(fork);
}

}  // namespace

PolicyKit::PolicyKit(const KvPolicy& config, const model::Model& model)
    : policy(PolicyOf(config)), traits(policy->traits()), runner(*policy, ShapeOf(model.info())) {}

PolicySequence::PolicySequence(PolicyKit& kit, const model::Model& model, const KvPolicy& config,
                               uint32_t prompt_tokens, uint64_t seed)
    : kit_(kit),
      model_(model),
      config_(config),
      prompt_tokens_(prompt_tokens),
      seed_(seed),
      kv_(SequenceShapeOf(kit.traits.scope, config.mode, model)),
      store_(ShapeOf(model.info()), kit.traits,
             vtoken::OriginPosition(kit.traits.origin, prompt_tokens, config.shared_prompt,
                                    kit.traits.window_rows)),
      budget_(BudgetOf(config, kit.traits)) {}

PolicySequence::PolicySequence(PolicySequence& parent, std::span<const BlockId> table)
    : others(parent.others),
      stalled(parent.stalled),
      kit_(parent.kit_),
      model_(parent.model_),
      config_(parent.config_),
      prompt_tokens_(parent.prompt_tokens_),
      seed_(parent.seed_),
      kv_(Forked(parent.kv_, table)),
      store_(parent.store_),
      budget_(parent.budget_) {}

uint32_t PolicySequence::hit_tokens_max() const {
  return kit_.traits.signals.attention() ? store_.origin() : UINT32_MAX;
}

uint32_t PolicySequence::slots_max() const {
  const uint32_t next = budget_.NextRun(lengths());
  const bool keeps_dead = config_.mode != vtoken::Mode::kExact;
  if (config_.budget == 0 || keeps_dead || next == UINT32_MAX) return UINT32_MAX;
  return std::max(config_.budget, kv_.live_tokens()) + (next - kv_.logical_length());
}

void PolicySequence::Ask(uint32_t n, model::SeqSlice& slice) {
  const uint32_t first = slice.first_position;
  if (const auto waiting = kv_.waiting_slots(); !waiting.empty()) {
    write_slots_.resize(size_t{model_.info().layers} * model_.info().kv_heads);
    for (uint32_t i = 0; i < write_slots_.size(); ++i) write_slots_[i] = waiting[UnitOf(i)];
    slice.write_slots = write_slots_;
  }
  if (config_.mode == vtoken::Mode::kMasked && kv_.evicted()) HideDead(slice);
  if (!store_.wanted() || budget_.full()) return;
  store_.Reserve(slice.active_length + n);
  const vtoken::StepSignals step = store_.Step(first, n, budget_.NextRun(lengths()));
  const size_t size = step.stride * model_.info().layers * model_.info().heads;
  const auto span = [size](float* at) { return std::span(at, at == nullptr ? 0 : size); };
  signals_ = {static_cast<uint32_t>(step.stride),
              {span(step.column_sum), step.count_from},
              {span(step.window_sum), step.window_from},
              {span(step.low_count), step.count_from},
              step.low_factor,
              span(step.last_row)};
  slice.signals = &signals_;
}

uint32_t PolicySequence::UnitOf(uint32_t layer_and_head) const {
  const vtoken::Scope scope = kit_.traits.scope;
  if (scope == vtoken::Scope::kSequence) return 0;
  return scope == vtoken::Scope::kLayer ? layer_and_head / model_.info().kv_heads : layer_and_head;
}

void PolicySequence::HideDead(model::SeqSlice& slice) {
  const uint32_t words = kv_.active_length() / 64 + 1;
  const uint32_t heads = model_.info().layers * model_.info().kv_heads;
  dead_.resize(size_t{heads} * words);
  for (uint32_t i = 0; i < heads; ++i)
    for (uint32_t w = 0; w < words; ++w) dead_[i * words + w] = kv_.dead_slots(UnitOf(i), w);
  slice.dead = dead_;
}

void PolicySequence::Follow(std::span<const BlockId> table, uint32_t computed) {
  HIDANE_ASSERT(kv_.SetTable(table));
  if (computed > kv_.logical_length()) {
    HIDANE_ASSERT(kv_.Append(computed - kv_.logical_length()));
  }
}

std::span<const uint32_t> PolicySequence::Choose() {
  const auto keep = budget_.KeepAt(lengths());
  if (!keep) return {};
  const vtoken::SequencePlaces places(kv_);
  const vtoken::RunInput input{
      .live = kv_.live_tokens(),
      .slots = kv_.active_length(),
      .logical_length = kv_.logical_length(),
      .keep = *keep,
      .guards = {.sinks = kit_.traits.sinks, .recent = budget_.RecentOf(*keep)},
      .seed = Mix64(seed_ + kv_.logical_length()),
      .places = kv_.evicted() ? &places : nullptr,
      .signals = &store_,
      .keys = this};
  if (!kit_.runner.Run(input, victims_)) return {};  // more is guarded than may stay: nobody goes
  if (!budget_.Accept(victims_.lost_mass)) return {};
  return victims_.slots;
}

void PolicySequence::Relayout(const vtoken::EpochChange& change) {
  if (change.plan != nullptr) store_.Follow(*change.plan, kv_.shape().block_size);
  if (!change.victims.empty()) store_.RunDone();
}

void PolicySequence::ReadKeys(uint32_t layer, uint32_t kv_head, uint32_t slots, float* out) const {
  model_.ReadKeys(layer, kv_head, kv_.table(), 0, slots,
                  {out, size_t{slots} * model_.info().head_dim});
}

}  // namespace hidane::engine
