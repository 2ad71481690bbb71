// What an epoch costs beside the copies: staging, plan, commit. One sequence of 2,048 tokens in
// blocks of 16; `allocs` counts heap allocations per round.
#include "vtoken/epoch.h"

#include <benchmark/benchmark.h>

#include <vector>

#include "base/counted_new.h"
#include "base/rng.h"
#include "vtoken/block_pool.h"

namespace hidane::vtoken {
namespace {

class Host final : public BlockPoolAdapter {
 public:
  Result<uint32_t> RefCount(BlockId block) const override { return pool_.RefCount(block); }
  Result<bool> Pinned(BlockId block) const override { return pool_.Pinned(block); }
  Result<BlockId> Allocate() override { return pool_.Allocate(); }
  Status Retain(BlockId block) override { return pool_.Ref(block); }
  Status Release(BlockId block) override { return pool_.Release(block, Reuse::kOldest); }
  Status Unpublish(BlockId) override { return {}; }

 private:
  using Reuse = BlockPool::Reuse;
  BlockPool pool_{1024};
};

// `period` tokens are appended, and as many of each unit go: one by slot reuse, more by hole fill.
void Round(benchmark::State& state) {
  constexpr uint32_t kCap = 2048;
  const auto units = static_cast<uint32_t>(state.range(0));
  const auto period = static_cast<uint32_t>(state.range(1));
  const uint32_t incoming = period == 1 ? 1 : 0;
  Host host;
  Epoch epoch(host);
  SequenceKv kv({.block_size = 16, .scope = Scope::kKvHead, .units = units});
  Rng rng(1);
  std::vector<uint32_t> victims(size_t{units} * period);
  if (!kv.Reserve(host, kCap) || !kv.Append(kCap)) std::abort();
  const auto round = [&] {
    if (!kv.Reserve(host, period) || !kv.Append(period)) std::abort();
    const uint32_t slots = kv.active_length(), stride = slots / period;
    for (size_t i = 0; i < victims.size(); ++i) {
      victims[i] = static_cast<uint32_t>(i % period * stride + rng.Below(stride));
    }
    if (!epoch.Evict(kv, victims, {.incoming = incoming}) || !epoch.Seal() || !epoch.Commit()) {
      std::abort();
    }
  };
  for (int i = 0; i < 50; ++i) round();
  const uint64_t before = g_allocations;
  for (auto _ : state) round();
  state.counters["allocs"] = static_cast<double>(g_allocations - before);
  state.counters["moves"] = static_cast<double>(epoch.stats().moves);
}
BENCHMARK(Round)
    ->ArgNames({"units", "period"})
    ->ArgsProduct({{1, 30, 90}, {1, 128}})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace hidane::vtoken

BENCHMARK_MAIN();
