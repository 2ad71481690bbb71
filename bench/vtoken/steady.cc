#include "steady.h"

#include <algorithm>
#include <utility>

#include "arms.h"
#include "base/rng.h"
#include "timing.h"

namespace hidane::bench {
namespace {

using vtoken::LiveSet;
using vtoken::RelocationPlan;

/// Which token lies in which slot of one mechanism's cache.
class Cache {
 public:
  Cache(uint32_t block_size, uint32_t tokens) : live_(block_size) {
    for (uint32_t token = 0; token < tokens; ++token) slots_.push_back(token);
  }
  void Append(uint32_t first, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) slots_.push_back(first + i);
  }
  /// REQUIRES: victims ascending, all here.
  void Evict(std::span<const uint32_t> victims) {
    live_.AssignDense(static_cast<uint32_t>(slots_.size()));
    for (uint32_t slot = 0; slot < slots_.size(); ++slot)
      if (std::ranges::binary_search(victims, slots_[slot])) live_.Kill(slot);
  }
  void Put(uint32_t slot, uint32_t token) { slots_[slot] = token; }
  const LiveSet& live() const { return live_; }
  uint32_t token(size_t slot) const { return slots_[slot]; }
  size_t size() const { return slots_.size(); }

  void Pack() {
    size_t to = 0;
    for (uint32_t slot = 0; slot < live_.slots(); ++slot)
      if (live_.live(slot)) slots_[to++] = slots_[slot];
    slots_.resize(to);
  }
  void Follow(const RelocationPlan& plan) {
    const uint32_t b = live_.block_size();
    slots_.resize(size_t{plan.blocks + plan.fresh} * b);
    for (const auto& move : plan.moves) slots_[move.to] = slots_[move.from];
    std::vector<uint32_t> after;
    for (const uint32_t block : plan.kept)
      after.insert(after.end(), slots_.begin() + size_t{block} * b,
                   slots_.begin() + (size_t{block} + 1) * b);
    after.resize(plan.slots);
    slots_ = std::move(after);
  }

 private:
  std::vector<uint32_t> slots_;
  LiveSet live_;
};

/// `n` of the tokens of `cache`, ascending.
std::vector<uint32_t> Draw(const Cache& cache, uint32_t n, Rng& rng) {
  std::vector<uint32_t> victims;
  const size_t all = cache.size();
  for (size_t i = 0; i < all && n > 0; ++i)
    if (rng.Below(all - i) < n) victims.push_back(cache.token(i)), --n;
  std::ranges::sort(victims);
  return victims;
}

}  // namespace

SteadyRow RunSteady(const SteadyCase& at, uint32_t rounds, uint64_t seed) {
  const double cap = at.cap, period = at.period;
  const bool reuse = at.period == 1;
  SteadyRow row{.at = at,
                .expected_order = reuse ? (cap - 1) / 2 : cap - cap / (period + 1),
                .expected_ours = reuse ? 0 : period * cap / (cap + period)};
  Cache ours(at.block_size, at.cap), packed(at.block_size, at.cap);
  vtoken::RelocationPlanner planner;
  RelocationPlan plan;
  Timings timings;
  Rng rng(seed);
  for (uint32_t round = 0; round < rounds; ++round) {
    const uint32_t next = at.cap + round * at.period;
    if (!reuse) ours.Append(next, at.period), packed.Append(next, at.period);
    const auto victims = Draw(packed, at.period, rng);
    ours.Evict(victims);
    packed.Evict(victims);
    row.order_preserving += static_cast<double>(PackMoves(packed.live()));
    row.out_of_place += static_cast<double>(CopyMoves(packed.live()));
    // A hole that waits for the next token needs no move: nothing to bound.
    if (!reuse) row.bound += static_cast<double>(MovesBound({&ours.live(), 1}, false));
    timings.Time([&] { planner.Plan({.units = {&ours.live(), 1}, .incoming = reuse}, plan); });
    row.ours += static_cast<double>(plan.moves.size());
    packed.Pack();
    ours.Follow(plan);
    if (reuse) packed.Append(next, 1), ours.Put(plan.incoming[0], next);
    row.ours_blocks = static_cast<double>(plan.kept.size());
  }
  for (double* mean : {&row.order_preserving, &row.out_of_place, &row.bound, &row.ours})
    *mean /= rounds;
  row.plan_us_p50 = timings.Us(0.5);
  row.plan_us_p99 = timings.Us(0.99);
  return row;
}

}  // namespace hidane::bench
