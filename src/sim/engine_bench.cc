// Steps a second of one engine, and requests a second: the seed scenario's prompts (27,000 static
// tokens and 1,000 own, 120 out) on 8B BF16 on H100.
#include "sim/engine.h"

#include <benchmark/benchmark.h>

#include "base/rng.h"

namespace hidane::sim {
namespace {

Request Make(uint64_t id, uint64_t tenant, uint32_t granularity) {
  Request request;
  request.id = id;
  request.output_tokens = 120;
  prompt::Identity& p = request.prompt;
  const auto add = [&](uint64_t contents, uint32_t tokens) {
    for (uint32_t at = 0; at < tokens; at += granularity) {
      p.tokens += std::min(granularity, tokens - at);
      p.ends.push_back(p.tokens);
      p.chain.push_back(Mix64(p.HashAt(p.size()) ^ Mix64(contents + at)));
    }
  };
  add(tenant << 32, 27'000);
  p.k1_end = static_cast<uint32_t>(p.size());
  add((1'000 + id) << 32, 1'000);
  return request;
}

// 6 at a time, in turn from as many tenants as the argument says: 5 stay cached, 80 never are.
void Serve(benchmark::State& state) {
  Engine engine({.gpu = GpuSetups()[0]});
  const auto tenants = static_cast<uint64_t>(state.range(0));
  uint64_t id = 0, ended = 0, steps = 0;
  for (auto _ : state) {
    while (id - ended < 6) {
      ++id;
      engine.Submit(Make(id, id % tenants, 4'096));
    }
    engine.BeginStep();
    ++steps;
    for (const StepEvent& e : engine.EndStep()) ended += e.kind == StepEvent::Kind::kFinished;
  }
  const auto rate = benchmark::Counter::kIsRate;
  state.counters["steps"] = benchmark::Counter(static_cast<double>(steps), rate);
  state.counters["requests"] = benchmark::Counter(static_cast<double>(ended), rate);
}
BENCHMARK(Serve)->Arg(5)->Arg(80);

}  // namespace
}  // namespace hidane::sim

BENCHMARK_MAIN();
