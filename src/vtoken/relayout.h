#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "vtoken/relocation_planner.h"

namespace hidane::vtoken {

/// Carries an array that has one value for each table slot of `unit` (token ids, accumulated
/// signals) over a plan, as the moves carry the K/V rows: afterwards it has plan.slots values in
/// the order of the new table. The value of the slot left open for an incoming token is
/// unspecified. `scratch` is only memory that is kept, a block of it. O(moves), or O(slots) if
/// blocks change places.
template <class Values>
void Relayout(const RelocationPlan& plan, uint32_t unit, uint32_t block_size, Values& values,
              Values& scratch) {
  const size_t spanned = size_t{plan.blocks + plan.fresh} * block_size;
  const bool keeps_order = plan.KeepsOrder();
  values.resize(keeps_order ? std::max<size_t>(values.size(), plan.slots) : spanned);
  for (uint32_t i = plan.unit_begin[unit]; i < plan.unit_begin[unit + 1]; ++i) {
    values[plan.moves[i].to] = values[plan.moves[i].from];
  }
  if (!keeps_order) {
    // All but the tail ascend, so none is overwritten before it has gone to its place.
    const auto block = [&](size_t index) { return values.begin() + index * block_size; };
    scratch.assign(block(plan.kept.back()), block(plan.kept.back() + 1));
    const size_t last = plan.kept.size() - 1;
    for (size_t i = 0; i < last; ++i) {
      if (plan.kept[i] != i) std::copy_n(block(plan.kept[i]), block_size, block(i));
    }
    std::copy(scratch.begin(), scratch.end(), block(last));
  }
  values.resize(plan.slots);
}

}  // namespace hidane::vtoken
