// How many events a second the simulator's heart can plan and take.
#include <benchmark/benchmark.h>

#include "base/rng.h"
#include "sim/agenda.h"

namespace hidane::sim {
namespace {

// Each event plans the next one, as a step plans its end: range(0) are always planned.
void TakeOneAndPlanOne(benchmark::State& state) {
  Agenda agenda;
  Rng rng(1);
  for (int64_t i = 0; i < state.range(0); ++i) agenda.Push(Duration(rng.Below(20'000'000)), {});
  for (auto _ : state) {
    const Agenda::Due due = agenda.Pop();
    agenda.Push(due.at + Duration(rng.Below(20'000'000)), due.event);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(TakeOneAndPlanOne)->Arg(100)->Arg(10'000);

}  // namespace
}  // namespace hidane::sim

BENCHMARK_MAIN();
