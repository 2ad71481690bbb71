#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include "vtoken/policy_run.h"
#include "vtoken/recorded_attention.h"

/// What signals and policies cost this library, at the shape of SmolLM2-135M: 30 layers, 9 query
/// heads, 3 KV heads of 64. What the *model* pays for a signal is measured beside its kernels.
namespace hidane::vtoken {
namespace {

constexpr HeadShape kShape{.layers = 30, .q_heads = 9, .kv_heads = 3};
constexpr uint32_t kHeadDim = 64;

/// Keys of any bytes; reading them is a plain copy here.
struct FlatKeys final : KeySource {
  explicit FlatKeys(uint32_t slots) : rows(size_t{slots} * kHeadDim) {
    RecordedKeys(kHeadDim).ReadKeys(0, 0, slots, rows.data());
  }
  uint32_t head_dim() const override { return kHeadDim; }
  void ReadKeys(uint32_t, uint32_t, uint32_t slots, float* out) const override {
    std::copy_n(rows.begin(), size_t{slots} * kHeadDim, out);
  }
  std::vector<float> rows;
};

/// Tokens that lie in reversed order, so that nothing is gathered for free.
struct Reversed final : TokenPlaces {
  void Read(uint32_t, std::span<uint32_t> slots, std::span<uint32_t> positions) const override {
    for (uint32_t i = 0; i < slots.size(); ++i)
      slots[i] = i, positions[i] = static_cast<uint32_t>(slots.size()) - 1 - i;
  }
};

SignalStore FilledStore(const PolicyTraits& traits, uint32_t slots) {
  SignalStore store(kShape, traits, 0);
  store.Reserve(slots);
  if (!store.wanted()) return store;
  const StepSignals step = store.Step(0, 1, 1);
  Rng rng(3);
  for (float* array : {step.column_sum, step.low_count, step.last_row, step.window_sum})
    for (size_t i = 0; array && i < size_t{kShape.layers} * kShape.q_heads * step.stride; ++i)
      array[i] = static_cast<float>(rng.Unit());
  return store;
}

/// One run of a policy: {live tokens, victims}. `ns/token` is per token and unit.
void BM_PolicyRun(benchmark::State& state, std::string_view name) {
  const auto live = static_cast<uint32_t>(state.range(0));
  const auto policy = std::move(*MakePolicy(name));
  const PolicyTraits traits = policy->traits();
  const SignalStore store = FilledStore(traits, live);
  const FlatKeys keys(live);
  const Reversed places;
  PolicyRunner runner(*policy, kShape);
  const RunInput input{.live = live,
                       .slots = live,
                       .logical_length = live,
                       .keep = live - static_cast<uint32_t>(state.range(1)),
                       .guards = {.sinks = traits.sinks, .recent = traits.recent},
                       .places = &places,
                       .signals = &store,
                       .keys = &keys};
  Victims victims;
  for (auto _ : state)
    if (!runner.Run(input, victims)) state.SkipWithError("run failed");
  const double tokens = static_cast<double>(live) * UnitCount(traits.scope, kShape);
  state.counters["units"] = UnitCount(traits.scope, kShape);
  state.counters["ns/token"] =
      benchmark::Counter(tokens * 1e-9 * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
const int kRegistered = [] {
  for (const std::string_view name : PolicyNames())
    benchmark::RegisterBenchmark(("BM_PolicyRun/" + std::string(name)).c_str(),
                                 [name](benchmark::State& state) { BM_PolicyRun(state, name); })
        ->Args({2048 + 128, 128})
        ->ArgNames({"live", "victims"})
        ->Unit(benchmark::kMicrosecond);
  return 0;
}();

/// What an epoch's moves cost the store: {signals kept, moves per unit}.
void BM_StoreMove(benchmark::State& state) {
  PolicyTraits traits{.signals = {Signal::kColumnSum}, .window_rows = 8};
  if (state.range(0) == 4)
    traits.signals = {Signal::kColumnSum, Signal::kLowCount, Signal::kLastRow, Signal::kWindowSum};
  SignalStore store = FilledStore(traits, 2176);
  const uint32_t units = UnitCount(traits.scope, kShape);
  for (auto _ : state)
    for (uint32_t unit = 0; unit < units; ++unit)
      for (uint32_t i = 0; i < 128; ++i) store.Move(unit, 2048 + i, 7 * i);
  state.counters["ns/move"] =
      benchmark::Counter(units * 128e-9 * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_StoreMove)->Arg(1)->Arg(4)->ArgName("signals")->Unit(benchmark::kMicrosecond);

/// Adding one decoded row to a column sum of 2048 slots in every head: the store's share of a step
/// when the weights are already there.
void BM_StoreAddRow(benchmark::State& state) {
  SignalStore store = FilledStore({.signals = {Signal::kColumnSum}}, 2048);
  const std::vector<float> row(2048, 1e-3F);
  for (auto _ : state) {
    const StepSignals step = store.Step(2047, 1, UINT32_MAX);
    for (size_t head = 0; head < size_t{kShape.layers} * kShape.q_heads; ++head)
      for (size_t slot = 0; slot < row.size(); ++slot)
        step.column_sum[head * step.stride + slot] += row[slot];
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_StoreAddRow)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace hidane::vtoken

BENCHMARK_MAIN();
