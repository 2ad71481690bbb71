#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "vtoken/relocation_planner.h"

namespace hidane::vtoken {

/// Carries an array that has one value for each table slot of `unit` (token ids, accumulated
/// signals) over a plan, as the moves carry the K/V rows: afterwards it has plan.slots values in
/// the order of the new table. The value of the slot left open for an incoming token is
/// unspecified. `scratch` is only memory that is kept. O(moves), or O(slots) if blocks change
/// places.
template <class T>
void Relayout(const RelocationPlan& plan, uint32_t unit, uint32_t block_size,
              std::vector<T>& values, std::vector<T>& scratch) {
  const size_t spanned = size_t{plan.blocks + plan.fresh} * block_size;
  const bool keeps_order = plan.KeepsOrder();
  values.resize(keeps_order ? std::max<size_t>(values.size(), plan.slots) : spanned);
  for (uint32_t i = plan.unit_begin[unit]; i < plan.unit_begin[unit + 1]; ++i) {
    values[plan.moves[i].to] = values[plan.moves[i].from];
  }
  if (!keeps_order) {
    scratch.resize(plan.kept.size() * block_size);
    auto out = scratch.begin();
    for (const uint32_t block : plan.kept) {
      out = std::copy_n(values.begin() + size_t{block} * block_size, block_size, out);
    }
    std::swap(values, scratch);
  }
  values.resize(plan.slots);
}

}  // namespace hidane::vtoken
