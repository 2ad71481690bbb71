#include "vtoken/signal_store.h"

#include <algorithm>

#include "base/assert.h"

namespace hidane::vtoken {

SignalStore::SignalStore(const HeadShape& shape, const PolicyTraits& traits, uint32_t origin)
    : shape_(shape),
      signals_(traits.signals),
      scope_(traits.scope),
      window_rows_(traits.window_rows),
      low_factor_(traits.low_factor),
      origin_(origin) {
  HIDANE_ASSERT(shape.kv_heads > 0 && shape.q_heads % shape.kv_heads == 0);
}

void SignalStore::Reserve(uint32_t slots) {
  if (!wanted() || slots <= slots_) return;
  const uint32_t grown = std::max(slots, slots_ + slots_ / 2);
  const size_t heads = size_t{shape_.layers} * shape_.q_heads;
  for (size_t s = 0; s < kAttention.size(); ++s) {
    if (!signals_.Has(kAttention[s])) continue;
    std::vector<float> wider(heads * grown);
    for (size_t h = 0; h < heads; ++h)
      std::copy_n(arrays_[s].begin() + static_cast<ptrdiff_t>(h * slots_), slots_,
                  wider.begin() + static_cast<ptrdiff_t>(h * grown));
    arrays_[s] = std::move(wider);
  }
  slots_ = grown;
}

StepSignals SignalStore::Step(uint32_t first, uint32_t n, uint32_t next_run) {
  // Row r of the step has position first + r; the first of them at or after `position`:
  const auto row_at = [&](uint32_t position) {
    return std::min(n, position - std::min(position, first));
  };
  const uint32_t window = next_run - std::min(next_run, window_rows_);
  return {.column_sum = Array(Signal::kColumnSum),
          .low_count = Array(Signal::kLowCount),
          .last_row = Array(Signal::kLastRow),
          .window_sum = Array(Signal::kWindowSum),
          .stride = slots_,
          .low_factor = low_factor_,
          .count_from = row_at(origin_),
          .window_from = row_at(std::max(window, origin_))};
}

float* SignalStore::Array(Signal signal) {
  for (size_t s = 0; s < kAttention.size(); ++s)
    if (kAttention[s] == signal && signals_.Has(signal)) return arrays_[s].data();
  return nullptr;
}

SignalStore::Heads SignalStore::HeadsOf(uint32_t unit) const {
  if (scope_ == Scope::kSequence) return {0, size_t{shape_.layers} * shape_.q_heads};
  if (scope_ == Scope::kLayer) return {size_t{unit} * shape_.q_heads, shape_.q_heads};
  return {size_t{unit} * shape_.group(), shape_.group()};
}

void SignalStore::Follow(const RelocationPlan& plan, uint32_t block_size) {
  if (!wanted()) return;
  Reserve((plan.blocks + plan.fresh) * block_size);
  for (const SlotMove& move : plan.moves) Move(move.unit, move.from, move.to);
  if (!plan.KeepsOrder()) ReorderBlocks(plan.kept, block_size);
  Truncate(plan.slots);
  for (uint32_t unit = 0; unit < plan.incoming.size(); ++unit) Clear(unit, plan.incoming[unit]);
}

void SignalStore::ReorderBlocks(std::span<const uint32_t> kept, uint32_t block_size) {
  scratch_.resize(kept.size() * block_size);
  for (std::vector<float>& array : arrays_)
    for (size_t row = 0; row < array.size(); row += slots_) {
      const auto from = array.begin() + static_cast<ptrdiff_t>(row);
      auto out = scratch_.begin();
      for (const uint32_t block : kept)
        out = std::copy_n(from + static_cast<ptrdiff_t>(block * block_size), block_size, out);
      std::ranges::copy(scratch_, from);
    }
}

void SignalStore::Move(uint32_t unit, uint32_t from, uint32_t to) {
  const Heads heads = HeadsOf(unit);
  for (std::vector<float>& array : arrays_)
    if (!array.empty())
      for (size_t h = heads.first; h < heads.first + heads.count; ++h)
        array[h * slots_ + to] = array[h * slots_ + from];
}

void SignalStore::Clear(uint32_t unit, uint32_t slot) {
  const Heads heads = HeadsOf(unit);
  for (std::vector<float>& array : arrays_)
    if (!array.empty())
      for (size_t h = heads.first; h < heads.first + heads.count; ++h) array[h * slots_ + slot] = 0;
}

void SignalStore::Truncate(uint32_t live) {
  for (std::vector<float>& array : arrays_)
    for (size_t row = 0; row < array.size(); row += slots_)
      std::fill(array.begin() + static_cast<ptrdiff_t>(row + std::min(live, slots_)),
                array.begin() + static_cast<ptrdiff_t>(row + slots_), 0.0F);
}

void SignalStore::RunDone() {
  std::ranges::fill(arrays_[3], 0.0F);  // kWindowSum
}

std::span<const float> SignalStore::Row(Signal signal, uint32_t layer, uint32_t q_head) const {
  for (size_t s = 0; s < kAttention.size(); ++s)
    if (kAttention[s] == signal && signals_.Has(signal))
      return std::span(arrays_[s])
          .subspan((size_t{layer} * shape_.q_heads + q_head) * slots_, slots_);
  return {};
}

}  // namespace hidane::vtoken
