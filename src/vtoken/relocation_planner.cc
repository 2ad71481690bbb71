#include "vtoken/relocation_planner.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace hidane::vtoken {
namespace {

// Slots of `block` that were ever live.
uint32_t Spanned(const LiveSet& unit, uint32_t block) {
  return std::min(unit.slots() - block * unit.block_size(), unit.block_size());
}

BlockUse UseOf(const PlanInput& input, uint32_t block) {
  return input.uses.empty() ? BlockUse::kOwn : input.uses[block];
}

uint64_t TokensOf(const PlanInput& input) {
  return uint64_t{input.units[0].count()} * input.units.size();
}

}  // namespace

void RelocationPlanner::Plan(const PlanInput& input, RelocationPlan& plan) {
  Decide(input, plan);
  Emit(input, plan);
}

void RelocationPlanner::Decide(const PlanInput& input, RelocationPlan& plan) {
  HIDANE_ASSERT(!input.units.empty() && input.incoming <= 1);
  for (const LiveSet& u : input.units) {
    HIDANE_ASSERT(u.count() == input.units[0].count() && u.slots() == input.units[0].slots());
  }
  const LiveSet& unit = input.units[0];
  const uint32_t size = unit.block_size();
  plan.blocks = unit.blocks();
  plan.slots = unit.count() + input.incoming;
  const uint32_t stay = (plan.slots + size - 1) / size;
  MakeKeys(input, plan.blocks);
  plan.fresh = stay > keepers_ ? stay - keepers_ : 0;
  if (stay == 0) {
    Split(FindTop(0), plan.blocks, 0, plan);
    plan.moves_bound = plan.free_tail_bound = 0;
    return;
  }
  const Top others = FindTop(stay - 1), all = FindTop(stay);
  const uint32_t first = plan.slots - (stay - 1) * size;
  // A full tail is a block like the others: the fullest stay, and in their order.
  const Tail tail = first < size ? FindTail(input, others, all, first) : Tail{UINT32_MAX, all.sum};
  const bool in_top = tail.block >= plan.blocks ? first == size : keys_[tail.block] > all.threshold;
  Split(in_top ? all : others, tail.block, stay, plan);
  plan.moves_bound = TokensOf(input) - tail.kept;
  plan.free_tail_bound = TokensOf(input) - all.sum;
}

void RelocationPlanner::MakeKeys(const PlanInput& input, uint32_t blocks) {
  const auto units = static_cast<uint32_t>(input.units.size());
  const uint32_t size = input.units[0].block_size();
  keys_.resize(blocks);
  uint32_t* const keys = keys_.data();  // a local, as below: what is written can't alias it
  const uint16_t* occupancy = input.units[0].occupancies().data();
#pragma GCC unroll 8  // a loop so short takes half as long again where it lies across cache lines
  for (uint32_t b = 0; b < blocks; ++b) keys[b] = occupancy[b] + 1u;
  for (const LiveSet& unit : input.units.subspan(1)) {
    occupancy = unit.occupancies().data();
    for (uint32_t b = 0; b < blocks; ++b) keys[b] += occupancy[b];
  }
  for (uint32_t b = 0; b < input.uses.size(); ++b) {
    const uint32_t whole = input.uses[b] == BlockUse::kPinned ? Spanned(input.units[0], b) : size;
    if (input.uses[b] != BlockUse::kOwn && keys[b] != units * whole + 1) keys[b] = 0;
  }
  CountKeys(units * size + 2);
  keepers_ = blocks - histogram_[0];
}

// In four tables where there are many, since neighbors often have the same key and an addition
// would wait for the last.
void RelocationPlanner::CountKeys(uint32_t range) {
  const uint32_t tables = keys_.size() < 4 * size_t{range} ? 1 : 4;
  histogram_.assign(size_t{range} * tables, 0);
  uint32_t* const c0 = histogram_.data();
  if (tables == 1) {
    for (const uint32_t key : keys_) ++c0[key];
    return;
  }
  uint32_t *const c1 = c0 + range, *const c2 = c1 + range, *const c3 = c2 + range;
  const size_t fours = keys_.size() / 4 * 4;
  const uint32_t* const keys = keys_.data();
  for (size_t i = 0; i < fours; i += 4) {
    ++c0[keys[i]];
    ++c1[keys[i + 1]];
    ++c2[keys[i + 2]];
    ++c3[keys[i + 3]];
  }
  for (size_t i = fours; i < keys_.size(); ++i) ++c0[keys[i]];
  for (size_t k = 0; k < range; ++k) c0[k] += c1[k] + c2[k] + c3[k];
  histogram_.resize(range);
}

RelocationPlanner::Top RelocationPlanner::FindTop(uint32_t n) const {
  Top top{.count = n, .threshold = static_cast<uint32_t>(histogram_.size())};
  for (uint32_t left = n; left > 0 && top.threshold > 1; left -= top.ties) {
    --top.threshold;
    top.ties = std::min(left, histogram_[top.threshold]);
    top.sum += uint64_t{top.ties} * (top.threshold - 1);
  }
  return top;
}

// With a tail t besides them the others keep others.sum tokens, or all.sum - o_t if t is one of
// them: the smaller of the two. A fresh tail loses a tie, among blocks the last one wins.
RelocationPlanner::Tail RelocationPlanner::FindTail(const PlanInput& input, const Top& others,
                                                    const Top& all, uint32_t first) {
  const auto blocks = static_cast<uint32_t>(keys_.size());
  firsts_.assign(blocks, 0);
  for (const LiveSet& unit : input.units) unit.AddCountFirst(first, firsts_);
  // How many more than others.sum, so that a block takes few instructions.
  const auto last = static_cast<int32_t>(all.sum - others.sum + 1);
  const uint32_t *const keys = keys_.data(), *const firsts = firsts_.data();
  const auto more = [=](uint32_t b) {
    return std::min(0, last - static_cast<int32_t>(keys[b])) + static_cast<int32_t>(firsts[b]);
  };
  const auto may = [&](uint32_t b) {
    return UseOf(input, b) == BlockUse::kOwn ||
           (keys[b] != 0 && Spanned(input.units[0], b) <= first);
  };
  int32_t most = keepers_ < all.count ? 0 : INT32_MIN;  // a fresh one keeps others.sum
  if (input.uses.empty()) {
    for (uint32_t b = 0; b < blocks; ++b) most = std::max(most, more(b));
  } else {
    for (uint32_t b = 0; b < blocks; ++b) most = may(b) ? std::max(most, more(b)) : most;
  }
  for (uint32_t b = blocks; b-- > 0;) {
    if (more(b) == most && may(b)) return {b, others.sum + static_cast<uint64_t>(most)};
  }
  return {blocks, others.sum};
}

void RelocationPlanner::Split(const Top& top, uint32_t tail, uint32_t stay, RelocationPlan& plan) {
  // One more each, so that the loop may write before it knows; and the old tail may be of the top.
  plan.kept.resize(size_t{stay} + 1);
  plan.freed.resize(size_t{plan.blocks} - std::min(top.count, keepers_) + 2);
  const bool old_tail = tail < plan.blocks;
  if (old_tail) keys_[tail] = 0;  // not among the others
  const uint32_t* const keys = keys_.data();
  uint32_t* const kept_at = plan.kept.data();
  uint32_t* const freed_at = plan.freed.data();
  uint32_t kept = 0;
  for (uint32_t b = 0, ties = top.ties; b < plan.blocks;) {
    // `ties` blocks still stay by their index alone, so none of the next `ties` comes too late.
    const uint32_t least = top.threshold + (ties == 0);
    const uint32_t end = ties == 0 ? plan.blocks : std::min(plan.blocks, b + ties);
    uint32_t tied = 0;
    for (; b < end; ++b) {
      kept_at[kept] = freed_at[b - kept] = b;
      kept += keys[b] >= least;
      tied += keys[b] == top.threshold;
    }
    ties -= std::min(ties, tied);
  }
  plan.kept.resize(kept);
  plan.freed.resize(plan.blocks - kept);
  if (old_tail) plan.freed.erase(std::lower_bound(plan.freed.begin(), plan.freed.end(), tail));
  for (uint32_t b = plan.blocks; plan.kept.size() + old_tail < stay; ++b) plan.kept.push_back(b);
  if (old_tail) plan.kept.push_back(tail);
  // Kept blocks ascend but for the tail, so the last two tell.
  const uint32_t before = stay > 1 ? plan.kept[stay - 2] + 1 : 0;
  plan.keeps_order = stay == 0 || (plan.kept.back() + 1 == stay && before + 1 == stay);
}

void RelocationPlanner::MarkKept(const RelocationPlan& plan, uint32_t size) {
  keep_.assign((size_t{plan.blocks} * size + 63) / 64, 0);
  const bool within_words = 64 % size == 0;
  const uint64_t whole = LowBits(size);
  uint64_t* const words = keep_.data();
  for (uint32_t i = 0; i < plan.kept.size(); ++i) {
    const uint32_t first = plan.kept[i] * size, n = std::min(size, plan.slots - i * size);
    if (plan.kept[i] >= plan.blocks) continue;
    if (within_words && n == size) {
      words[first / 64] |= whole << first % 64;
    } else {
      SetBits(keep_, first, n);
    }
  }
}

// One pass over the words: live slots that aren't kept go to kept slots that aren't live, each in
// ascending order. The destinations may be one more: the slot left open, which is the last.
SlotMove* RelocationPlanner::EmitUnit(const LiveSet& live, uint32_t unit,
                                      const RelocationPlan& plan, SlotMove* from) const {
  const std::span<const uint64_t> words = live.words();
  SlotMove* to = from;
  for (uint32_t w = 0; w < words.size(); ++w) {
    for (uint64_t bits = words[w] & ~keep_[w]; bits != 0; bits &= bits - 1) {
      from->unit = unit;
      (from++)->from = w * 64 + static_cast<uint32_t>(std::countr_zero(bits));
    }
    for (uint64_t bits = ~words[w] & keep_[w]; bits != 0; bits &= bits - 1) {
      (to++)->to = w * 64 + static_cast<uint32_t>(std::countr_zero(bits));
    }
  }
  const uint32_t size = live.block_size();
  for (uint32_t i = 0; plan.fresh > 0 && i < plan.kept.size(); ++i) {
    const uint32_t first = plan.kept[i] * size;
    const uint32_t width = std::min(size, plan.slots - i * size);
    for (uint32_t slot = first; plan.kept[i] >= plan.blocks && slot < first + width; ++slot) {
      (to++)->to = slot;
    }
  }
  return from;
}

void RelocationPlanner::Emit(const PlanInput& input, RelocationPlan& plan) {
  const auto units = static_cast<uint32_t>(input.units.size());
  const uint32_t size = input.units[0].block_size();
  MarkKept(plan, size);
  plan.moves.resize(plan.moves_bound + 1);  // one more, for the last slot left open
  plan.unit_begin.resize(size_t{units} + 1);
  plan.incoming.resize(input.incoming * units);
  SlotMove* const first = plan.moves.data();
  SlotMove* at = first;
  for (uint32_t unit = 0; unit < units; ++unit) {
    plan.unit_begin[unit] = static_cast<uint32_t>(at - first);
    at = EmitUnit(input.units[unit], unit, plan, at);
    if (input.incoming == 0) continue;
    const uint32_t block = at->to / size;
    const auto place = std::find(plan.kept.begin(), plan.kept.end(), block) - plan.kept.begin();
    plan.incoming[unit] = static_cast<uint32_t>(place) * size + at->to % size;
  }
  plan.unit_begin[units] = static_cast<uint32_t>(at - first);
  plan.moves.pop_back();
}

}  // namespace hidane::vtoken
