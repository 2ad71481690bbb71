#include "sim/scenario_demo.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "sim/prompt_chain.h"
#include "sim/random.h"

namespace hidane::sim {
namespace {

// The real demo's prompts in the tokens of SmolLM2, as its tokenizer counts them for seed 1: own
// words and the template around them are 7 tokens more than words; the agents' prefixes, sized in
// bytes, are 936 to 1,024 tokens, 980 on average, where 1,000 were wanted, and 470 where 500 were.
// All begin alike, with the template's words about tools: an agent that nobody has seen finds 32
// tokens, rarely 48.
constexpr uint32_t kTemplateTokens = 7, kSharedTokens = 36;
// Requests that measure bytes a token, before all: round_robin goes on from there.
constexpr uint32_t kCalibrations = 2;
constexpr double kStaticSpread = 0.045, kStaticLess = 25;
// Assumed: a client wants a core for its next request, and so do engines that are more than the
// cores.
constexpr double kSendDelayS = 0.02;

/// Eight clients (or so) who send one list of requests, each the next one when it has its answer.
class DemoClients final : public Workload {
 public:
  explicit DemoClients(const DemoRun& run)
      : run_(run),
        popularity_(ZipfWeights(run.tenants, 0)),
        draws_(run.seed),
        delays_(Mix64(run.order_seed)) {
    for (uint32_t t = 0; t <= run.tenants; ++t) prompts_.push_back(StaticPrompt(t));
  }
  std::string_view name() const override { return "demo"; }
  std::optional<Request> Next() override {
    if (sent_ == run_.clients) return std::nullopt;
    return Send(TimePoint{});
  }
  std::optional<Request> After(const Finished&, TimePoint now) override { return Send(now); }

 private:
  std::optional<Request> Send(TimePoint now) {
    const uint64_t uncounted = kCalibrations + uint64_t{run_.warmup_rounds} * run_.tenants;
    if (sent_ == uncounted + run_.requests) return std::nullopt;
    Request request;
    request.arrival = now + FromSeconds(delays_.Exponential(kSendDelayS));
    request.counted = sent_ >= uncounted;
    request.tenant = sent_ < kCalibrations ? run_.tenants
                     : request.counted     ? DrawTenant()
                                           : InTurn(sent_ - kCalibrations);
    request.output_tokens = request.counted ? run_.output_tokens : 1;
    request.prompt = prompts_[request.tenant];
    AppendTokens(Mix64(run_.seed ^ Mix64(++sent_)), run_.own_tokens + kTemplateTokens,
                 request.prompt);
    request.prompt.k2_end = static_cast<uint32_t>(request.prompt.size());
    request.prompt.message_ends.push_back(request.prompt.k2_end);
    return request;
  }

  // Round k begins with agent k, as the real demo's.
  uint32_t InTurn(uint64_t nth) const {
    return static_cast<uint32_t>((nth + nth / run_.tenants) % run_.tenants);
  }
  // The same agents in the same order as in the real demo with this seed.
  uint32_t DrawTenant() {
    const uint32_t tenant = popularity_.Draw(draws_);
    draws_.Next();
    return tenant;
  }

  prompt::Identity StaticPrompt(uint32_t tenant) const {
    const uint64_t content = Mix64(run_.seed * 1'000'003 + tenant);
    const double spread = (2 * Rng(content).Unit() - 1) * kStaticSpread;
    prompt::Identity prompt;
    prompt.root = 1;
    const double wanted = run_.static_tokens * (1 + spread) - kStaticLess;
    const auto tokens = static_cast<uint32_t>(std::max(wanted, 1.0));
    const uint32_t shared = std::min(kSharedTokens, tokens);
    AppendTokens(run_.seed, shared, prompt);
    AppendTokens(content, tokens - shared, prompt);
    prompt.k1_end = prompt.tools_end = static_cast<uint32_t>(prompt.size());
    return prompt;
  }

  const DemoRun& run_;
  Weighted popularity_;
  Rng draws_, delays_;
  std::vector<prompt::Identity> prompts_;  // by tenant; the last one is the calibration's
  uint64_t sent_ = 0;
};

}  // namespace

Result<GpuSetup> CpuSetup(const CpuRates& rates, uint64_t kv_tokens) {
  const double step_1 = 1 / rates.decode_1, step_4 = 4 / rates.decode_4;
  const bool positive = rates.prefill > 0 && rates.decode_1 > 0 && rates.decode_4 > 0;
  if (!positive || step_4 < step_1 || step_4 > 4 * step_1) {
    return Fail(Code::kInvalidArgument,
                fmt::format("rates {} {} {} are not those of an engine", rates.prefill,
                            rates.decode_1, rates.decode_4),
                "rates");
  }
  GpuSetup cpu{.name = "cpu"};
  cpu.layers = 0;
  cpu.weight_bytes = cpu.kv_bytes_per_token = 0;
  cpu.parameters = 0.5;
  cpu.flops = rates.prefill;
  cpu.prefill_overhead_s = 0;
  cpu.decode_sequence_s = (step_4 - step_1) / 3;
  cpu.decode_overhead_s = step_1 - cpu.decode_sequence_s;
  cpu.kv_capacity_tokens = kv_tokens;
  return cpu;
}

Result<Setup> DemoSetup(const DemoRun& run) {
  EngineOptions engine;
  engine.block_size = 16;
  engine.max_num_batched_tokens = 512;
  engine.max_num_seqs = 64;
  engine.eviction = sched::Eviction::kReuse;  // hidane engine's
  HIDANE_TRY(engine.gpu, CpuSetup(run.rates, run.kv_tokens));
  Setup setup;
  setup.engines.assign(run.engines, engine);
  setup.shared_cores = run.cores;
  setup.policy = run.policy;
  setup.params = run.params;
  return setup;
}

Result<Run> SimulateDemo(const DemoRun& run, const Setup& setup) {
  DemoClients clients(run);
  HIDANE_TRY(Run result, Simulate(setup, clients));
  result.row.scenario = "demo";
  result.row.fleet = fmt::format("{}x{}", run.engines, run.tenants);
  result.row.phase = "sustained";
  return result;
}

}  // namespace hidane::sim
