#include "vtoken/policy_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/assert.h"
#include "vtoken/score_ops.h"

namespace hidane::vtoken {

PolicyRunner::PolicyRunner(Policy& policy, const HeadShape& shape)
    : policy_(policy), traits_(policy.traits()), shape_(shape) {}

// Sorts by scattering: positions are unique and below the logical length.
void PolicyRunner::Order(uint32_t unit, const RunInput& input) {
  slot_of_.resize(input.live);
  positions_.resize(input.live);
  if (input.places == nullptr) {
    std::iota(slot_of_.begin(), slot_of_.end(), 0u);
    std::iota(positions_.begin(), positions_.end(), 0u);
    return;
  }
  constexpr uint32_t kDead = std::numeric_limits<uint32_t>::max();
  read_slots_.resize(input.live);
  read_positions_.resize(input.live);
  input.places->Read(unit, read_slots_, read_positions_);
  by_position_.assign(input.logical_length, kDead);
  for (uint32_t i = 0; i < input.live; ++i) by_position_[read_positions_[i]] = read_slots_[i];
  size_t i = 0;
  for (uint32_t position = 0; position < input.logical_length; ++position) {
    if (by_position_[position] == kDead) continue;
    slot_of_[i] = by_position_[position];
    positions_[i++] = position;
  }
  HIDANE_ASSERT(i == input.live);
}

std::span<const float> PolicyRunner::Reduced(Signal signal, uint32_t unit, const RunInput& input,
                                             std::vector<float>& out) const {
  if (!traits_.signals.Has(signal)) return {};
  const uint32_t heads = shape_.q_heads;
  uint32_t first = 0, count = shape_.layers * heads;  // rows (layer, query head) of the unit
  if (traits_.scope == Scope::kLayer) first = unit * heads, count = heads;
  if (traits_.scope == Scope::kKvHead) first = unit * shape_.group(), count = shape_.group();
  const bool mean = traits_.reduce == Reduce::kMean;
  out.assign(input.live, 0);  // no attention signal is negative
  for (uint32_t row = first; row < first + count; ++row) {
    const auto values = input.signals->Row(signal, row / heads, row % heads);
    for (size_t i = 0; i < out.size(); ++i) {
      const float value = values[slot_of_[i]];
      out[i] = mean ? out[i] + value : std::max(out[i], value);
    }
  }
  if (mean)
    for (float& value : out) value /= static_cast<float>(count);
  return out;
}

void PolicyRunner::GatherKeys(uint32_t unit, const RunInput& input) {
  const uint32_t dim = input.keys->head_dim();
  raw_keys_.resize(size_t{input.slots} * dim);
  key_rows_.resize(size_t{input.live} * dim);
  key_norm_.resize(input.live);
  input.keys->ReadKeys(unit / shape_.kv_heads, unit % shape_.kv_heads, input.slots,
                       raw_keys_.data());
  for (size_t i = 0; i < input.live; ++i) {
    const auto key = std::span(raw_keys_).subspan(size_t{slot_of_[i]} * dim, dim);
    std::ranges::copy(key, key_rows_.begin() + static_cast<ptrdiff_t>(i * dim));
    key_norm_[i] = std::sqrt(Dot(key, key));
  }
}

TokenView PolicyRunner::View(uint32_t unit, const RunInput& input) {
  TokenView view{.unit = unit,
                 .logical_length = input.logical_length,
                 .seed = input.seed,
                 .positions = positions_,
                 .column_sum = Reduced(Signal::kColumnSum, unit, input, column_sum_),
                 .low_count = Reduced(Signal::kLowCount, unit, input, low_count_),
                 .last_row = Reduced(Signal::kLastRow, unit, input, last_row_),
                 .window_sum = Reduced(Signal::kWindowSum, unit, input, window_sum_)};
  if (!traits_.signals.keys()) return view;
  GatherKeys(unit, input);
  view.head_dim = input.keys->head_dim();
  if (traits_.signals.Has(Signal::kKeyNorm)) view.key_norm = key_norm_;
  if (traits_.signals.Has(Signal::kKeyRows)) view.key_rows = key_rows_;
  return view;
}

double PolicyRunner::LostMass(const TokenView& view) const {
  const auto mass = !view.column_sum.empty()   ? view.column_sum
                    : !view.window_sum.empty() ? view.window_sum
                                               : view.last_row;
  if (mass.empty()) return 0;
  double lost = 0, all = 0;
  for (const float m : mass) all += m;
  for (const uint32_t victim : victims_) lost += mass[victim];
  return all > 0 ? lost / all : 0;
}

Status PolicyRunner::Run(const RunInput& input, Victims& out) {
  HIDANE_ASSERT(!traits_.signals.attention() || input.signals != nullptr);
  HIDANE_ASSERT(!traits_.signals.keys() || input.keys != nullptr);
  HIDANE_ASSERT(input.slots >= input.live);
  out = {.units = UnitCount(traits_.scope, shape_),
         .per_unit = input.live - std::min(input.live, input.keep),
         .slots = std::move(out.slots),
         .positions = std::move(out.positions)};
  out.slots.clear();
  out.positions.clear();
  score_.resize(input.live);
  for (uint32_t unit = 0; unit < out.units; ++unit) {
    Order(unit, input);
    const TokenView view = View(unit, input);
    policy_.Score(view, score_);
    HIDANE_CHECK_OK(
        SelectVictims(score_, positions_, input.guards, input.keep, select_keys_, victims_));
    for (const uint32_t victim : victims_) {
      out.slots.push_back(slot_of_[victim]);
      out.positions.push_back(positions_[victim]);
    }
    out.lost_mass += LostMass(view) / out.units;
  }
  return {};
}

}  // namespace hidane::vtoken
