#include "load/measure.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <optional>

namespace hidane::load {
namespace {

constexpr double kFirstGuessBytesPerToken = 4.0;

/// Sum over the engines; nullopt when one lacks the counters or doesn't answer.
std::optional<EngineCounters> ReadCounters(const std::vector<Target>& engines) {
  EngineCounters sum;
  for (const Target& engine : engines) {
    const auto answer = Call(engine, "GET", "/metrics");
    if (!answer || answer->status != 200) return std::nullopt;
    const auto counters = ParseEngineCounters(answer->body);
    if (!counters) return std::nullopt;
    sum += *counters;
  }
  if (engines.empty()) return std::nullopt;
  return sum;
}

/// Tokens of tenant 0's prompt; 0 when the target doesn't count.
Result<uint32_t> PromptTokens(const Target& target, const Workload& workload, uint64_t nth) {
  PlannedRequest request = workload.Extra(0, nth);
  request.output_tokens = 1;
  HIDANE_TRY(const std::vector<Outcome> outcomes,
             Run(target, workload, {&request, 1}, {.concurrency = 1}));
  const Outcome& outcome = outcomes.at(0);
  if (!outcome.ok()) {
    return Fail(Code::kUnavailable,
                fmt::format("{} answers a chat request with {}{}{}", target.url, Name(outcome.end),
                            outcome.detail.empty() ? "" : ": ", outcome.detail));
  }
  return outcome.prompt_tokens;
}

}  // namespace

Result<std::string> FirstModel(const Target& target) {
  HIDANE_TRY(const HttpAnswer answer, Call(target, "GET", "/v1/models"));
  simdjson::dom::parser parser;
  std::string_view id;
  if (answer.status != 200 || parser.parse(answer.body)["data"].at(0)["id"].get(id)) {
    return Fail(Code::kNotFound, fmt::format("{} lists no model", target.url));
  }
  return std::string(id);
}

Result<Workload> Calibrate(const Target& target, WorkloadOptions options) {
  // Tokens are an affine function of bytes: the template's own and so many a byte. Two points give
  // it; the second is near the goal, so that its error there is small.
  const uint32_t own = OwnWords(options.own_tokens), goal = options.static_tokens;
  double ratio = kFirstGuessBytesPerToken;
  for (uint64_t nth = 0; nth < 2; ++nth) {
    const Workload workload(options, ratio);
    HIDANE_TRY(const uint32_t tokens, PromptTokens(target, workload, nth));
    if (tokens <= own) break;
    ratio *= std::clamp(static_cast<double>(goal) / (tokens - own), 0.1, 10.0);
  }
  return Workload(std::move(options), ratio);
}

Result<std::vector<Outcome>> WarmUp(const Setup& setup, const Workload& workload, uint32_t round) {
  const uint32_t tenants = workload.options().tenants;
  std::vector<PlannedRequest> plan;
  for (uint32_t i = 0; i < tenants; ++i) {
    plan.push_back(workload.Extra((i + round) % tenants, 100 + round));
    plan.back().output_tokens = 1;  // the prompt is what a cache keeps
  }
  RunOptions closed = setup.run;
  closed.concurrency = std::max<uint32_t>(1, setup.run.concurrency);
  return Run(setup.target, workload, plan, closed);
}

Result<Measurement> Measure(const Setup& setup, const Workload& workload,
                            std::span<const PlannedRequest> plan, std::string_view policy,
                            std::span<const Outcome> warmup) {
  Measurement out;
  const auto before = ReadCounters(setup.engines);
  HIDANE_TRY(out.outcomes, Run(setup.target, workload, plan, setup.run));
  const auto after = ReadCounters(setup.engines);

  out.row = MakeRow(policy, out.outcomes, setup.run.concurrency == 0);
  std::vector<Outcome> all(warmup.begin(), warmup.end());
  all.insert(all.end(), out.outcomes.begin(), out.outcomes.end());
  const WorkloadOptions& options = workload.options();
  const auto static_tokens = StaticTokens(all, options.tenants, OwnWords(options.own_tokens));
  const bool counted = before && after;
  const Shares shares = counted ? SharesFromCounters(*after - *before, out.outcomes, static_tokens)
                                : EstimateShares(warmup, out.outcomes, static_tokens);
  out.row.recompute_share = shares.recompute;
  out.row.static_prefill_share = shares.static_prefill;
  out.row.shares_estimated = !counted;
  return out;
}

}  // namespace hidane::load
