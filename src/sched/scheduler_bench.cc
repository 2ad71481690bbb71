// What a step costs beside the model: 8B on an H100 in blocks of 64 tokens, prompts of 28,000.
#include "sched/scheduler.h"

#include <benchmark/benchmark.h>

#include "base/rng.h"

namespace hidane::sched {
namespace {

constexpr SchedulerOptions kOptions{
    .kv_blocks = 6250, .block_size = 64, .tokens_max = 8192, .seqs_max = 256};
constexpr uint32_t kPrompt = 28'000;

std::vector<Sha256Digest> Chain(uint64_t prompt) {
  std::vector<Sha256Digest> chain(kPrompt / kOptions.block_size);
  for (size_t i = 0; i < chain.size(); ++i) {
    const uint64_t name = Mix64(prompt << 32 | i);
    std::memcpy(chain[i].data(), &name, sizeof name);
  }
  return chain;
}

void Step(Scheduler& s) {
  const StepPlan plan = s.Plan();
  s.Commit(plan);
  s.Complete(plan);
  for (const StepPlan::Item& item : plan.run) {
    const SeqState& seq = s.state(item.id);
    if (seq.computed == seq.tokens) s.Append(item.id);
  }
}

// 12 sequences decode, and as many as the argument says wait for memory.
void Decode(benchmark::State& state) {
  Scheduler s(kOptions);
  const auto seqs = static_cast<uint64_t>(12 + state.range(0));
  for (uint64_t id = 1; id <= seqs; ++id) s.Add(SeqId(id), kPrompt, Chain(id));
  for (int i = 0; i < 60; ++i) Step(s);
  for (auto _ : state) Step(s);
  state.counters["running"] = s.running();
  state.counters["waiting"] = s.waiting();
}
BENCHMARK(Decode)->Arg(0)->Arg(20)->Iterations(2000);

// A prompt that nobody knows, from Add to Remove.
void ColdPrompt(benchmark::State& state) {
  Scheduler s(kOptions);
  for (uint64_t id = 1; auto _ : state) {
    s.Add(SeqId(id), kPrompt, Chain(id));
    while (s.state(SeqId(id)).computed < kPrompt) Step(s);
    s.Remove(SeqId(id++));
  }
}
BENCHMARK(ColdPrompt);

// A prompt whose blocks are all cached.
void WarmPrompt(benchmark::State& state) {
  Scheduler s(kOptions);
  for (uint64_t id = 1; auto _ : state) {
    s.Add(SeqId(id), kPrompt, Chain(0));
    while (s.state(SeqId(id)).computed < kPrompt) Step(s);
    s.Remove(SeqId(id++));
  }
}
BENCHMARK(WarmPrompt);

}  // namespace
}  // namespace hidane::sched

BENCHMARK_MAIN();
