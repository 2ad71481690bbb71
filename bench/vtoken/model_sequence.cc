#include "model_sequence.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/assert.h"
#include "base/rng.h"
#include "vtoken/relayout.h"

namespace hidane::bench {
namespace {

using vtoken::Scope;

constexpr uint32_t kDead = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kChunk = 256;

/// A sequence without a policy is one whose policy wants nothing.
vtoken::PolicyTraits TraitsOf(const vtoken::Policy* policy) {
  return policy ? policy->traits()
                : vtoken::PolicyTraits{.scope = Scope::kSequence,
                                       .origin = vtoken::Origin::kPromptEnd};
}

vtoken::HeadShape ShapeOf(const model::ModelInfo& info) {
  return {.layers = info.layers, .q_heads = info.heads, .kv_heads = info.kv_heads};
}

struct Keys final : vtoken::KeySource {
  Keys(const model::Model& m, std::span<const BlockId> t) : model(m), table(t) {}
  uint32_t head_dim() const override { return model.info().head_dim; }
  void ReadKeys(uint32_t layer, uint32_t kv_head, uint32_t slots, float* out) const override {
    model.ReadKeys(layer, kv_head, table, 0, slots, {out, size_t{slots} * head_dim()});
  }
  const model::Model& model;
  std::span<const BlockId> table;
};

struct Places final : vtoken::TokenPlaces {
  explicit Places(const std::vector<std::vector<uint32_t>>& t) : tokens(t) {}
  void Read(uint32_t unit, std::span<uint32_t> slots,
            std::span<uint32_t> positions) const override {
    size_t i = 0;
    for (uint32_t slot = 0; slot < tokens[unit].size(); ++slot)
      if (tokens[unit][slot] != kDead) slots[i] = slot, positions[i++] = tokens[unit][slot];
  }
  const std::vector<std::vector<uint32_t>>& tokens;
};

/// The store's arrays in the model's words.
model::SlotSignals ForModel(const vtoken::StepSignals& step, size_t heads) {
  const auto all = [&](float* array) {
    return array ? std::span(array, heads * step.stride) : std::span<float>();
  };
  return {.stride = static_cast<uint32_t>(step.stride),
          .mass = {all(step.column_sum), step.count_from},
          .window = {all(step.window_sum), step.window_from},
          .below = {all(step.low_count), step.count_from},
          .below_factor = step.low_factor,
          .last = all(step.last_row)};
}

}  // namespace

ModelSequence::ModelSequence(model::Model& model, vtoken::Policy* policy, uint32_t tokens_max)
    : model_(&model),
      policy_(policy),
      traits_(TraitsOf(policy)),
      shape_(ShapeOf(model.info())),
      // Any share below one runs after the prompt, which is what window signals look back from.
      budget_(*vtoken::BudgetController::Make({.keep = 0.5}, traits_)),
      signals_(shape_, traits_, 0),
      tokens_max_(tokens_max),
      tokens_(vtoken::UnitCount(traits_.scope, shape_)),
      logits_(model.info().vocab_size) {
  if (policy) runner_.emplace(*policy, shape_);
  for (uint32_t b = tokens_max / model.kv_layout().block_size + 1; b-- > 0;)
    free_.push_back(BlockId(b));
}

uint32_t ModelSequence::blocks() const {
  return static_cast<uint32_t>(table_.size());
}

std::span<const float> ModelSequence::Prefill(std::span<const TokenId> prompt,
                                              std::span<const std::byte> warm,
                                              uint32_t warm_tokens) {
  prompt_ = static_cast<uint32_t>(prompt.size());
  const uint32_t origin = vtoken::OriginPosition(traits_.origin, prompt_, 0, traits_.window_rows);
  signals_ = vtoken::SignalStore(shape_, traits_, origin);
  if (warm_tokens > 0 && warm_tokens <= origin) {
    Extend(warm_tokens);
    model_->LoadSlots(table_, slots_, warm);
  }
  for (size_t at = logical_; at < prompt.size(); at += kChunk)
    Forward(prompt.subspan(at, std::min<size_t>(kChunk, prompt.size() - at)));
  return logits_;
}

std::vector<std::byte> ModelSequence::SaveKv() const {
  std::vector<std::byte> kv(slots_ * model_->kv_layout().token_bytes());
  model_->SaveSlots(table_, slots_, kv);
  return kv;
}

void ModelSequence::Resume(model::Model& model, std::span<const std::byte> kv, Eviction eviction,
                           const vtoken::BudgetConfig& budget, const VictimTrace* replay) {
  model_ = &model;
  model.LoadSlots(table_, slots_, kv);
  eviction_ = eviction;
  budget_ = *vtoken::BudgetController::Make(budget, traits_);
  replay_ = replay;
}

std::span<const float> ModelSequence::Decode(TokenId token) {
  Evict();
  return Forward({&token, 1});
}

void ModelSequence::Shuffle(uint64_t seed) {
  const auto& layout = model_->kv_layout();
  const size_t row = layout.row_bytes(), rows = size_t{2} * layout.layers * layout.kv_heads;
  std::vector<uint32_t> order(slots_);
  std::iota(order.begin(), order.end(), 0u);
  Rng rng(seed);
  for (uint32_t i = slots_; i > 1; --i) std::swap(order[i - 1], order[rng.Below(i)]);
  std::vector<std::byte> bytes(slots_ * layout.token_bytes()), shuffled(bytes.size());
  model_->SaveSlots(table_, slots_, bytes);
  for (size_t r = 0; r < rows; ++r)
    for (uint32_t slot = 0; slot < slots_; ++slot)
      std::copy_n(bytes.data() + (r * slots_ + order[slot]) * row, row,
                  shuffled.data() + (r * slots_ + slot) * row);
  model_->LoadSlots(table_, slots_, shuffled);
  for (std::vector<uint32_t>& unit : tokens_) unit = order;
}

void ModelSequence::Extend(uint32_t n) {
  const uint32_t b = model_->kv_layout().block_size;
  HIDANE_ASSERT(logical_ + n <= tokens_max_);
  for (; table_.size() * b < slots_ + n; free_.pop_back()) table_.push_back(free_.back());
  for (std::vector<uint32_t>& unit : tokens_)
    for (uint32_t i = 0; i < n; ++i) unit.push_back(logical_ + i);
  logical_ += n, slots_ += n, live_ += n;
}

std::span<const float> ModelSequence::Forward(std::span<const TokenId> tokens) {
  const auto n = static_cast<uint32_t>(tokens.size());
  const vtoken::Lengths before{prompt_, logical_, live_};
  const uint32_t slots = slots_;
  Extend(n);
  signals_.Reserve(slots_);
  const auto step = signals_.Step(before.logical, n, budget_.NextRun(before));
  const model::SlotSignals signals = ForModel(step, size_t{shape_.layers} * shape_.q_heads);
  const model::SeqSlice slice{.n_tokens = n,
                              .first_position = before.logical,
                              .active_length = slots,
                              .block_table = table_,
                              .want_logits = true,
                              .signals = step.wanted() ? &signals : nullptr,
                              .dead = dead_};
  model_->Forward({tokens, {&slice, 1}}, logits_);
  return logits_;
}

vtoken::Victims ModelSequence::Choose(uint32_t keep) {
  const Keys keys(*model_, table_);
  const Places places(tokens_);
  vtoken::Victims victims;
  const Status run =
      runner_->Run({.live = live_,
                    .slots = slots_,
                    .logical_length = logical_,
                    .keep = keep,
                    .guards = {.sinks = traits_.sinks, .recent = budget_.RecentOf(keep)},
                    .seed = Mix64(logical_),
                    .places = &places,
                    .signals = &signals_,
                    .keys = &keys},
                   victims);
  HIDANE_ASSERT(run.has_value());
  return victims;
}

void ModelSequence::Evict() {
  if (policy_ == nullptr || eviction_ == Eviction::kNone) return;
  const auto keep = budget_.KeepAt({prompt_, logical_, live_});
  if (!keep) return;
  RecordedRun run{.logical_length = logical_};
  if (replay_) {
    run = (*replay_)[trace_.size()];
    HIDANE_ASSERT(run.logical_length == logical_ && run.per_unit == live_ - *keep);
  } else {
    vtoken::Victims chosen = Choose(*keep);
    run.per_unit = chosen.per_unit;
    run.positions = std::move(chosen.positions);
  }
  // Positions, not slots: the other's lie elsewhere.
  std::vector<uint32_t> slot_of(logical_), slots;
  for (uint32_t unit = 0; unit < units(); ++unit) {
    for (uint32_t slot = 0; slot < slots_; ++slot)
      if (tokens_[unit][slot] != kDead) slot_of[tokens_[unit][slot]] = slot;
    for (uint32_t i = 0; i < run.per_unit; ++i)
      slots.push_back(slot_of[run.positions[size_t{unit} * run.per_unit + i]]);
  }
  if (eviction_ == Eviction::kMasked)
    Hide(slots);
  else
    Repair(slots);
  live_ = *keep;
  signals_.RunDone();
  trace_.push_back(std::move(run));
}

/// Sets the victims' bits for every KV head of their unit.
void ModelSequence::Hide(std::span<const uint32_t> victims) {
  const uint32_t words = tokens_max_ / 64 + 1, heads = shape_.layers * shape_.kv_heads;
  dead_.resize(size_t{heads} * words);
  const uint32_t heads_each = heads / units();
  const size_t per_unit = victims.size() / units();
  for (uint32_t unit = 0; unit < units(); ++unit)
    for (const uint32_t slot : victims.subspan(unit * per_unit, per_unit)) {
      tokens_[unit][slot] = kDead;
      for (uint32_t head = unit * heads_each; head < (unit + 1) * heads_each; ++head)
        dead_[size_t{head} * words + slot / 64] |= uint64_t{1} << slot % 64;
    }
}

/// Plans, moves the rows, and lets whatever is kept by slot follow.
void ModelSequence::Repair(std::span<const uint32_t> victims) {
  const uint32_t b = model_->kv_layout().block_size;
  const size_t per_unit = victims.size() / units();
  std::vector<vtoken::LiveSet> live(units(), vtoken::LiveSet(b));
  for (uint32_t unit = 0; unit < units(); ++unit) {
    live[unit].AssignDense(slots_);
    for (const uint32_t slot : victims.subspan(unit * per_unit, per_unit)) live[unit].Kill(slot);
  }
  vtoken::RelocationPlan plan;
  planner_.Plan({.units = live}, plan);
  std::vector<model::RowMove> moves;
  const auto physical = [&](uint32_t slot) { return table_[slot / b].value() * b + slot % b; };
  for (const vtoken::SlotMove& move : plan.moves)
    moves.push_back({move.unit, physical(move.from), physical(move.to)});
  model_->MoveRows(traits_.scope == Scope::kSequence ? model::KvUnit::kSequence
                   : traits_.scope == Scope::kLayer  ? model::KvUnit::kLayer
                                                     : model::KvUnit::kKvHead,
                   moves);
  std::vector<uint32_t> scratch;
  for (uint32_t unit = 0; unit < units(); ++unit)
    vtoken::Relayout(plan, unit, b, tokens_[unit], scratch);
  signals_.Follow(plan, b);
  std::vector<BlockId> table;
  for (const uint32_t block : plan.kept) table.push_back(table_[block]);
  for (const uint32_t block : plan.freed) free_.push_back(table_[block]);
  table_ = std::move(table);
  slots_ = plan.slots;
}

}  // namespace hidane::bench
