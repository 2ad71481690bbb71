#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "engine/evictor.h"
#include "engine/hand_loop.h"
#include "engine/kv_policy.h"

/// What eviction costs and gives end to end: the engine's step by hand, on the real model (CPU time
/// of the process, one thread) and, for memory alone, on a model that computes nothing.
///   eviction_bench [idle | relocation | concurrency | throughput]...   MODEL=file.gguf
/// PROMPT, ANSWER, REQUESTS and MEMORY (a share of what four requests need) say how much.
namespace hidane::engine {
namespace {

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(q * double(values.size())))];
}
double Mean(const std::vector<double>& values) {
  return values.empty()
             ? 0
             : std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

std::unique_ptr<model::Model> Load(uint32_t kv_blocks) {
  const char* path = std::getenv("MODEL");
  const std::string file =
      path != nullptr ? path : HIDANE_SOURCE_DIR "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  auto model = model::Model::Load(file, {.kv_blocks = kv_blocks});
  if (!model) {
    fmt::print(stderr, "{}\n", model.error().what);
    std::exit(3);
  }
  return std::move(*model);
}

/// Time in eviction calls of a step in which nobody has a policy, against the step.
void Idle() {
  fmt::print("idle: calls of a step without policies / the step\n");
  for (const uint32_t batch : {1u, 32u}) {
    const auto model = Load(1024);
    sched::Scheduler scheduler({.kv_blocks = 1024});
    Evictor evictor(*model, scheduler, g_cpu);
    sched::StepPlan plan;
    plan.run.assign(batch, {SeqId(1), 1});
    model::SeqSlice slice{};
    constexpr int kTurns = 1'000'000;
    const TimePoint start = g_cpu.Now();
    for (int i = 0; i < kTurns; ++i) {
      evictor.Join();
      evictor.Save(plan.preempt);
      evictor.Restore(plan.admit);
      for (uint32_t seq = 0; seq < batch; ++seq) evictor.Ask(SeqId(1), slice);
      evictor.Run(plan);
    }
    const double calls = Seconds(g_cpu.Now() - start) / kTurns;
    Loop loop(*model, {}, 512);
    for (uint32_t i = 0; i < batch; ++i) loop.Add(16, 40);
    std::vector<double> steps;
    while (!loop.idle()) {
      const StepCost cost = loop.Step();
      if (cost.decode_only) steps.push_back(cost.seconds);
    }
    fmt::print("  batch {:2}: calls {:.1f} ns, step {:.2f} ms, {:.5f} %\n", batch, calls * 1e9,
               Quantile(steps, 0.5) * 1e3, 100 * calls / Quantile(steps, 0.5));
  }
}

void Relocation(uint32_t prompt, uint32_t answer) {
  fmt::print(
      "relocation: batch 4, prompt {}, answer {}, budget half of the prompt (wait and work "
      "by decode step, ms; null mover: the same steps with no row copied)\n",
      prompt, answer);
  const auto real = Load(4 * (prompt + answer + 64) / 16);
  Unmoving unmoving(*real);
  for (const char* name :
       {"none", "streaming-llm", "snapkv", "h2o", "tova", "scissorhands", "keydiff", "r-kv"}) {
    for (const bool moves : {true, false}) {
      if (!moves && std::string_view(name) == "none") continue;
      model::Model& model = moves ? *real : static_cast<model::Model&>(unmoving);
      Loop loop(model, {name, prompt / 2, 1, 0}, 512);
      for (int i = 0; i < 4; ++i) loop.Add(prompt, answer);
      std::vector<double> steps, waits, works;
      double prefill = 0;
      while (!loop.idle()) {
        const StepCost cost = loop.Step();
        if (!cost.decode_only) prefill += cost.seconds;
        if (cost.decode_only) steps.push_back(cost.seconds);
        if (cost.relocated) waits.push_back(cost.wait);
        if (cost.decode_only) works.push_back(cost.eviction);
      }
      const double step = Mean(steps);
      fmt::print(
          "  {:13} {:10} prefill {:7.2f} s, step {:7.2f}, relocating steps {:3}, wait mean {:.3f} "
          "({:.2f} %) p99 {:.3f} max {:.3f}, work {:.2f} ({:.1f} %), moves {}, freed {}\n",
          name, moves ? "" : "null mover", prefill, step * 1e3, waits.size(), Mean(waits) * 1e3,
          100 * Mean(waits) / step, Quantile(waits, 0.99) * 1e3, Quantile(waits, 1) * 1e3,
          Mean(works) * 1e3, 100 * Mean(works) / step, loop.stats().moves,
          loop.stats().blocks_freed);
    }
  }
}

/// True if n sequences come to decode together to their ends, and nobody is ever preempted. Each
/// comes when the one before is past its prompt: prefill peaks apart.
bool Holds(uint32_t blocks, const KvPolicy& policy, uint32_t n, uint32_t prompt, uint32_t answer) {
  NoModel model(blocks);
  Loop loop(model, policy, 2048);
  uint32_t added = 0;
  bool together = false;
  while (added < n || !loop.idle()) {
    if (added < n && loop.all_decode()) {
      loop.Add(prompt, answer);
      ++added;
    }
    if (loop.Step().preempted > 0) return false;
    together = together || (added == n && loop.live() == n && loop.all_decode());
  }
  return together;
}

void Concurrency() {
  constexpr uint32_t kBlocks = 4096, kPrompt = 1024, kAnswer = 1024;
  // From what the blocks could hold downwards.
  const auto most = [&](const KvPolicy& policy, uint32_t slots) {
    uint32_t n = kBlocks / ((slots + 15) / 16);
    while (n > 0 && !Holds(kBlocks, policy, n, kPrompt, kAnswer)) --n;
    return n;
  };
  const uint32_t full = most({}, kPrompt + kAnswer);
  fmt::print("concurrency: {} blocks of 16, prompt {}, answer {}: full K/V {}\n", kBlocks, kPrompt,
             kAnswer, full);
  for (const char* name : {"streaming-llm", "random"}) {
    for (const double share : {0.35, 0.5}) {
      const auto cap = static_cast<uint32_t>(share * (kPrompt + kAnswer));
      const KvPolicy policy{name, cap, 1, 0};
      const uint32_t period = PolicyOf(policy)->traits().trigger.over;
      const double bound = double((kPrompt + kAnswer + 15) / 16) / double((cap + period + 15) / 16);
      const uint32_t ours = most(policy, cap + period);
      fmt::print("  {:13} budget {:4} period {:3}: {:3}, {:.2f} x, bound {:.2f}, {:.3f} of it\n",
                 name, cap, period, ours, double(ours) / full, bound, double(ours) / full / bound);
    }
  }
}

/// How evicted tokens leave: moved together at once, masked until blocks are short, or masked with
/// their blocks held (Naive-Evict).
struct Arm {
  const char *policy, *name;
  vtoken::Mode mode = vtoken::Mode::kExact;
  Blocks blocks = Blocks::kReclaimed;
};
constexpr Arm kArms[] = {{"none", "full K/V"},
                         {"streaming-llm", "exact"},
                         {"streaming-llm", "masked", vtoken::Mode::kMasked},
                         {"streaming-llm", "naive", vtoken::Mode::kMasked, Blocks::kHeld},
                         {"snapkv", "exact"},
                         {"snapkv", "masked", vtoken::Mode::kMasked},
                         {"snapkv", "naive", vtoken::Mode::kMasked, Blocks::kHeld},
                         {"h2o", "exact"}};

void Throughput(uint32_t prompt, uint32_t answer, uint32_t requests,
                const std::vector<double>& shares) {
  constexpr uint32_t kBatch = 4;
  const uint32_t need = kBatch * (prompt + answer + 15) / 16;
  fmt::print(
      "throughput: {} requests of {} + {} tokens, memory as a share of what {} of them "
      "need\n",
      requests, prompt, answer, kBatch);
  for (const double share : shares) {
    const auto model = Load(static_cast<uint32_t>(share * need));
    for (const Arm& arm : kArms) {
      if (share == 1 && std::string_view(arm.policy) != "none") continue;
      const auto budget = static_cast<uint32_t>(share * (prompt + answer));
      Loop loop(*model, {arm.policy, budget, 1, 0, arm.mode}, 512, arm.blocks);
      for (uint32_t i = 0; i < requests; ++i) loop.Add(prompt, answer);
      std::vector<double> steps;
      double total = 0, running = 0;
      size_t preempted = 0, n = 0;
      while (!loop.idle()) {
        const StepCost cost = loop.Step();
        total += cost.seconds;
        preempted += cost.preempted;
        running += cost.running;
        ++n;
        if (cost.decode_only) steps.push_back(cost.seconds);
      }
      fmt::print(
          "  memory {:.2f} {:13} {:8} {:6.1f} tokens/s, TPOT p50 {:6.1f} p95 {:6.1f} ms, mean "
          "running {:.1f}, preempted {}\n",
          share, arm.policy, arm.name, requests * answer / total, Quantile(steps, 0.5) * 1e3,
          Quantile(steps, 0.95) * 1e3, running / double(n), preempted);
    }
  }
}

uint32_t Number(const char* name, uint32_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : static_cast<uint32_t>(std::atoi(value));
}

/// Memory's shares of the need: MEMORY names one, for long runs side by side.
std::vector<double> Shares() {
  const char* one = std::getenv("MEMORY");
  return one == nullptr ? std::vector<double>{1.0, 0.5, 0.35} : std::vector<double>{std::atof(one)};
}

}  // namespace
}  // namespace hidane::engine

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  using namespace hidane::engine;
  const uint32_t prompt = Number("PROMPT", 1024), answer = Number("ANSWER", 128);
  for (int i = 1; i < argc; ++i) {
    const std::string_view part = argv[i];
    if (part == "idle")
      Idle();
    else if (part == "relocation")
      Relocation(prompt, answer);
    else if (part == "concurrency")
      Concurrency();
    else if (part == "throughput")
      Throughput(prompt, answer, Number("REQUESTS", 8), Shares());
    else {
      fmt::print(stderr, "usage: eviction_bench [idle|relocation|concurrency|throughput]...\n");
      return 2;
    }
  }
  return 0;
}
