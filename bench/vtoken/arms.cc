#include "arms.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

namespace hidane::bench {

using vtoken::LiveSet;

namespace {

/// Occupancy of each block, summed over units.
std::vector<uint32_t> Sums(std::span<const LiveSet> units) {
  std::vector<uint32_t> sums(units[0].blocks());
  for (const LiveSet& unit : units)
    for (size_t b = 0; b < sums.size(); ++b) sums[b] += unit.occupancies()[b];
  return sums;
}

uint32_t CeilDiv(uint32_t a, uint32_t b) {
  return (a + b - 1) / b;
}

Outcome Naive(std::span<const LiveSet> units) {
  const auto sums = Sums(units);
  const auto held =
      static_cast<double>(sums.size()) - static_cast<double>(std::ranges::count(sums, 0u));
  return {.blocks = held, .peak_blocks = held};
}

Outcome BlockGranular(std::span<const LiveSet> units) {
  auto sums = Sums(units);
  const uint32_t blocks = units[0].count() / units[0].block_size();
  std::ranges::sort(sums, std::greater{});
  const uint64_t kept = std::accumulate(sums.begin(), sums.begin() + blocks, uint64_t{0});
  const double chosen = static_cast<double>(units[0].count()) * static_cast<double>(units.size());
  return {.blocks = static_cast<double>(blocks),
          .peak_blocks = static_cast<double>(blocks),
          .kept_choice = chosen > 0 ? static_cast<double>(kept) / chosen : 1};
}

template <class Moves>
Outcome Compacted(std::span<const LiveSet> units, double fresh, Moves moves) {
  const double blocks = CeilDiv(units[0].count(), units[0].block_size());
  Outcome out{.blocks = blocks, .peak_blocks = Naive(units).blocks + fresh};
  for (const LiveSet& unit : units) out.moves += moves(unit);
  return out;
}

uint32_t LeadingFull(const LiveSet& unit) {
  uint32_t block = 0;
  while (block < unit.blocks() && unit.occupancies()[block] == unit.block_size()) ++block;
  return block;
}

}  // namespace

std::string_view NameOf(Mechanism mechanism) {
  constexpr std::array<std::string_view, 8> kNames{
      "full_kv",          "naive_evict",  "block_granular", "page_size_1",
      "order_preserving", "out_of_place", "slot_reuse",     "ours"};
  return kNames[static_cast<size_t>(mechanism)];
}

uint64_t PackMoves(const LiveSet& unit) {
  uint32_t first_hole = 0;
  while (first_hole < unit.slots() && unit.live(first_hole)) ++first_hole;
  return unit.count() - first_hole;
}

uint64_t CopyMoves(const LiveSet& unit) {
  return unit.count() - LeadingFull(unit) * unit.block_size();
}

uint64_t MovesBound(std::span<const LiveSet> units, bool free_tail) {
  const uint32_t b = units[0].block_size(), live = units[0].count();
  if (live == 0) return 0;
  const uint32_t kept = CeilDiv(live, b), tail_slots = live - (kept - 1) * b;
  const auto sums = Sums(units);
  uint64_t best = 0;
  for (uint32_t tail = 0; tail < sums.size(); ++tail) {
    auto others = sums;
    uint64_t stay = others[tail];
    others.erase(others.begin() + tail);
    if (!free_tail) {
      stay = 0;
      for (const LiveSet& unit : units) stay += unit.CountFirst(tail, tail_slots);
    }
    std::ranges::nth_element(others, others.begin() + (kept - 1), std::greater{});
    best = std::max(best, std::accumulate(others.begin(), others.begin() + (kept - 1), stay));
  }
  const uint64_t all = uint64_t{live} * units.size();
  return all - std::min(all, best);  // a free tail may hold more than its share
}

Outcome Apply(Mechanism mechanism, std::span<const LiveSet> units) {
  const double all = units[0].blocks();
  const double exact = static_cast<double>(units[0].count()) / units[0].block_size();
  switch (mechanism) {
    case Mechanism::kFullKv:
      return {.blocks = all, .peak_blocks = all};
    case Mechanism::kNaiveEvict:
    case Mechanism::kSlotReuse:
      return Naive(units);
    case Mechanism::kBlockGranular:
      return BlockGranular(units);
    case Mechanism::kPageSizeOne:
      return {.blocks = exact, .peak_blocks = exact};
    case Mechanism::kOrderPreserving:
      return Compacted(units, 0, PackMoves);
    case Mechanism::kOutOfPlace: {
      uint32_t stay = units[0].blocks();
      for (const LiveSet& unit : units) stay = std::min(stay, LeadingFull(unit));
      const double fresh = CeilDiv(units[0].count(), units[0].block_size()) - stay;
      return Compacted(units, fresh, [stay](const LiveSet& unit) {
        return uint64_t{unit.count()} - stay * unit.block_size();
      });
    }
    case Mechanism::kOurs:
      break;
  }
  return {};
}

}  // namespace hidane::bench
