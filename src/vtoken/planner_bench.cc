// What a plan costs: deciding which blocks stay, writing the moves, and a round of steady decode.
// `allocs` counts heap allocations per round; a kept planner makes none.
#include <benchmark/benchmark.h>

#include <vector>

#include "base/counted_new.h"
#include "base/rng.h"
#include "vtoken/relocation_planner.h"

namespace hidane::vtoken {
namespace {

// `units` live sets of `slots` slots, of which `live` stay at random.
std::vector<LiveSet> Units(uint32_t units, uint32_t block_size, uint32_t slots, uint32_t live) {
  Rng rng(1);
  std::vector<LiveSet> sets(units, LiveSet(block_size));
  for (LiveSet& set : sets) {
    set.AssignDense(slots);
    while (set.count() > live) set.Kill(static_cast<uint32_t>(rng.Below(slots)));
  }
  return sets;
}

// Of the arguments token-units, units, block size, percent kept.
std::vector<LiveSet> UnitsOf(const benchmark::State& state) {
  const auto units = static_cast<uint32_t>(state.range(1));
  const auto slots = static_cast<uint32_t>(state.range(0)) / units;
  return Units(units, static_cast<uint32_t>(state.range(2)), slots,
               slots * static_cast<uint32_t>(state.range(3)) / 100);
}

void Decide(benchmark::State& state) {
  const auto sets = UnitsOf(state);
  RelocationPlanner planner;
  RelocationPlan plan;
  planner.Decide({.units = sets}, plan);
  const uint64_t before = g_allocations;
  for (auto _ : state) planner.Decide({.units = sets}, plan);
  state.counters["allocs"] = static_cast<double>(g_allocations - before);
}
// Half of 10^5 tokens in blocks of 16 fill the last block, 51 % leave a partial one.
BENCHMARK(Decide)
    ->ArgNames({"token_units", "units", "B", "keep"})
    ->ArgsProduct({{100'000, 1'000'000}, {1, 90}, {16, 128}, {50, 51}})
    ->Unit(benchmark::kMicrosecond);

void Emit(benchmark::State& state) {
  const auto sets = UnitsOf(state);
  RelocationPlanner planner;
  RelocationPlan plan;
  planner.Plan({.units = sets}, plan);
  const uint64_t before = g_allocations;
  for (auto _ : state) planner.Emit({.units = sets}, plan);
  state.counters["allocs"] = static_cast<double>(g_allocations - before);
  state.counters["moves"] = static_cast<double>(plan.moves.size());
  state.counters["s_per_move"] = benchmark::Counter(
      static_cast<double>(plan.moves.size()),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(Emit)
    ->ArgNames({"token_units", "units", "B", "keep"})
    ->ArgsProduct({{100'000, 1'000'000}, {1, 90}, {16, 128}, {50, 51}})
    ->Unit(benchmark::kMicrosecond);

// Steady decode: 2,048 tokens stay, 128 are appended and 128 at random go, each round.
void SteadyDecode(benchmark::State& state) {
  constexpr uint32_t kCap = 2048, kPeriod = 128;
  const auto units = static_cast<uint32_t>(state.range(0));
  std::vector<LiveSet> sets(units, LiveSet(16));
  RelocationPlanner planner;
  RelocationPlan plan;
  Rng rng(1);
  std::vector<uint32_t> victims(1 << 16);
  for (uint32_t& v : victims) v = static_cast<uint32_t>(rng.Below(kCap + kPeriod));
  size_t next = 0;
  uint64_t moves = 0, before = 0;
  const auto round = [&] {
    for (LiveSet& set : sets) {
      set.AssignDense(kCap + kPeriod);
      while (set.count() > kCap) set.Kill(victims[next++ % victims.size()]);
    }
    planner.Plan({.units = sets}, plan);
    moves += plan.moves.size();
  };
  for (int i = 0; i < 100; ++i) round();
  moves = 0;
  before = g_allocations;
  for (auto _ : state) round();
  state.counters["allocs"] = static_cast<double>(g_allocations - before);
  state.counters["moves_per_unit_round"] =
      static_cast<double>(moves) / static_cast<double>(state.iterations() * units);
  state.counters["s_per_victim"] = benchmark::Counter(
      kPeriod * units, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(SteadyDecode)->ArgName("units")->Arg(1)->Arg(30)->Arg(90);

}  // namespace
}  // namespace hidane::vtoken

BENCHMARK_MAIN();
