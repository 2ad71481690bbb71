// A plan within a budget of moves, for sequences whose dead slots are masked or may linger.
#include <algorithm>
#include <numeric>
#include <vector>

#include "base/assert.h"
#include "vtoken/relocation_planner.h"

namespace hidane::vtoken {
namespace {

uint32_t Spanned(const LiveSet& unit, uint32_t block) {
  return std::min(unit.slots() - block * unit.block_size(), unit.block_size());
}

bool Owned(const PlanInput& input, uint32_t block) {
  return input.uses.empty() || input.uses[block] == BlockUse::kOwn;
}

}  // namespace

void RelocationPlanner::PlanPartial(const PlanInput& input, uint64_t moves_max,
                                    RelocationPlan& plan) {
  HIDANE_ASSERT(!input.units.empty() && input.incoming == 0);
  plan.blocks = input.units[0].blocks();
  MakeKeys(input, plan.blocks);
  Drain(input, moves_max, plan);
  const LiveSet& unit = input.units[0];
  const bool keeps_last = !plan.kept.empty() && plan.kept.back() + 1 == plan.blocks;
  plan.slots = static_cast<uint32_t>(plan.kept.size()) * unit.block_size();
  if (keeps_last) plan.slots -= unit.block_size() - Spanned(unit, plan.blocks - 1);
  plan.keeps_order = plan.kept.empty() || plan.kept.back() + 1 == plan.kept.size();
  plan.fresh = 0;
  plan.incoming.clear();
  EmitPartial(input, plan);
  plan.moves_bound = plan.free_tail_bound = plan.moves.size();
}

// The emptiest blocks go, as long as the others have holes for their tokens in every unit.
void RelocationPlanner::Drain(const PlanInput& input, uint64_t moves_max, RelocationPlan& plan) {
  std::vector<uint32_t> order;
  std::vector<uint64_t> holes(input.units.size());  // of kept blocks, less those already promised
  for (uint32_t b = 0; b < plan.blocks; ++b) {
    if (!Owned(input, b)) continue;
    order.push_back(b);
    for (size_t u = 0; u < holes.size(); ++u) {
      holes[u] += Spanned(input.units[u], b) - input.units[u].occupancies()[b];
    }
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return keys_[a] != keys_[b] ? keys_[a] < keys_[b] : a > b;
  });
  plan.freed.clear();
  uint64_t moves = 0;
  for (const uint32_t b : order) {
    // Its own holes go with it, and its tokens take others: the whole of its slots in each unit.
    const uint64_t slots = Spanned(input.units[0], b);
    const bool fits =
        std::all_of(holes.begin(), holes.end(), [&](uint64_t h) { return h >= slots; });
    const uint32_t tokens = keys_[b] - 1;
    if (!fits || moves + tokens > moves_max) break;
    moves += tokens;
    for (uint64_t& h : holes) h -= slots;
    plan.freed.push_back(b);
  }
  std::sort(plan.freed.begin(), plan.freed.end());
  std::vector<uint32_t> all(plan.blocks);
  std::iota(all.begin(), all.end(), 0u);
  plan.kept.clear();
  std::set_difference(all.begin(), all.end(), plan.freed.begin(), plan.freed.end(),
                      std::back_inserter(plan.kept));
}

void RelocationPlanner::EmitPartial(const PlanInput& input, RelocationPlan& plan) const {
  plan.moves.clear();
  plan.unit_begin.clear();
  for (uint32_t u = 0; u < input.units.size(); ++u) {
    const LiveSet& live = input.units[u];
    size_t next = plan.moves.size();
    plan.unit_begin.push_back(static_cast<uint32_t>(next));
    for (const uint32_t b : plan.freed) {
      live.ForEachLive(b * live.block_size(), live.block_size(),
                       [&](uint32_t slot) { plan.moves.push_back({u, slot, 0}); });
    }
    for (const uint32_t b : plan.kept) {
      if (!Owned(input, b)) continue;
      live.ForEachDead(b * live.block_size(), Spanned(live, b), [&](uint32_t slot) {
        if (next < plan.moves.size()) plan.moves[next++].to = slot;
      });
    }
  }
  plan.unit_begin.push_back(static_cast<uint32_t>(plan.moves.size()));
}

}  // namespace hidane::vtoken
