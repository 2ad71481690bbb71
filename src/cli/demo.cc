#include "cli/demo.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_out.h"
#include "cli/progress.h"
#include "load/measure.h"
#include "model/kernels.h"

namespace hidane::cli {
namespace {

Status Expect200(const load::Target& target, std::string_view path, std::string_view body) {
  HIDANE_TRY(const load::HttpAnswer answer, load::Call(target, "POST", path, body));
  if (answer.status == 200) return {};
  return Fail(Code::kUnavailable, fmt::format("{}{} answers {}", target.url, path, answer.status));
}

/// One policy: caches emptied, warm-up, run.
class PolicyRun {
 public:
  PolicyRun(const DemoOptions& options, const load::Workload& workload, ProgressLine& line)
      : options_(options), workload_(workload), line_(line) {
    setup_.target.url = options.gateway_url;
    for (const std::string& url : options.engine_urls) setup_.engines.push_back({.url = url});
    setup_.run.concurrency = options.clients;
  }

  /// Switches to `policy` and empties every engine's prefix cache.
  Status Begin(const std::string& policy) {
    policy_ = policy;
    warmup_.clear();
    HIDANE_CHECK_OK(
        Expect200({.url = options_.admin_url}, "/hidane/policy",
                  JsonWriter().BeginObject().Field("policy", policy).EndObject().str()));
    for (const load::Target& engine : setup_.engines) {
      HIDANE_CHECK_OK(Expect200(engine, "/reset_prefix_cache", ""));
    }
    return {};
  }

  /// At most `rounds` rounds, and no further one once `limit_s` are over; how many it were.
  Result<uint32_t> WarmUp(uint32_t rounds, double limit_s) {
    setup_.run.on_progress = ShowProgress(line_, policy_ + ", warm-up");
    const TimePoint start = SteadyClock().Now();
    uint32_t round = 0;
    while (round < rounds && Seconds(SteadyClock().Now() - start) < limit_s) {
      HIDANE_TRY(const auto outcomes, load::WarmUp(setup_, workload_, round++));
      if (outcomes.size() < options_.tenants) return Fail(Code::kCancelled, "stopped");
      warmup_.insert(warmup_.end(), outcomes.begin(), outcomes.end());
    }
    return round;
  }

  Result<load::Measurement> Finish(std::span<const load::PlannedRequest> plan) {
    setup_.run.on_progress = ShowProgress(line_, policy_);
    HIDANE_TRY(load::Measurement run, load::Measure(setup_, workload_, plan, policy_, warmup_));
    if (run.outcomes.size() < plan.size()) return Fail(Code::kCancelled, "stopped");
    return run;
  }

 private:
  const DemoOptions& options_;
  const load::Workload& workload_;
  ProgressLine& line_;
  load::Setup setup_;
  std::string policy_;
  std::vector<load::Outcome> warmup_;
};

/// How many requests both runs can take within the budget, judged by the first warm-up, which is
/// under round_robin too. The cure costs at most two fifths of that, and an answer of more than one
/// token a quarter.
uint32_t RequestsFor(const DemoOptions& options, uint32_t warmups, double warmup_s) {
  const double both_s = 1.4 * warmup_s, each_s = 1.25 * both_s / warmups;
  const double requests = (Seconds(options.budget) - both_s) / std::max(each_s, 1e-3);
  return static_cast<uint32_t>(
      std::clamp<double>(requests, options.requests_min, options.requests_max));
}

}  // namespace

DemoOptions DemoOf(uint32_t static_tokens) {
  DemoOptions demo;
  demo.static_tokens = static_tokens > 0            ? static_tokens
                       : model::CpuMultipliesBf16() ? demo.static_tokens
                                                    : 600;
  demo.own_tokens = std::max(1u, demo.static_tokens / 20);
  return demo;
}

uint32_t DemoKvTokens(const DemoOptions& o, uint32_t engines) {
  const double share = 1.15 * o.tenants / std::max(engines, 1u) * o.static_tokens;
  const uint32_t clients = (o.clients + engines - 1) / std::max(engines, 1u);
  const uint32_t running = clients * (o.own_tokens + o.output_tokens);
  return static_cast<uint32_t>(share) + running;
}

Result<DemoResult> RunDemo(const DemoOptions& options, ProgressLine& line) {
  load::WorkloadOptions wanted{.tenants = options.tenants,
                               .static_tokens = options.static_tokens,
                               .own_tokens = options.own_tokens,
                               .output_tokens = options.output_tokens,
                               .seed = options.seed,
                               .ignore_eos = true};
  const load::Target gateway{.url = options.gateway_url};
  line.Show("calibrating");
  HIDANE_TRY(wanted.model, load::FirstModel(gateway));
  HIDANE_TRY(const load::Workload workload, load::Calibrate(gateway, wanted));

  DemoResult result;
  PolicyRun run(options, workload, line);
  // Once each agent has been at each engine nothing is seen for the first time any more. A slow
  // machine makes do with fewer rounds.
  uint32_t rounds = static_cast<uint32_t>(options.engine_urls.size());
  for (const char* policy : {"round_robin", "prefix"}) {
    const TimePoint start = SteadyClock().Now();
    HIDANE_CHECK_OK(run.Begin(policy));
    HIDANE_TRY(rounds, run.WarmUp(rounds, Seconds(options.budget) / 3));
    if (result.rows.empty()) {
      wanted.requests =
          RequestsFor(options, rounds * options.tenants, Seconds(SteadyClock().Now() - start));
      result.warmups = rounds;
    }
    HIDANE_TRY(const load::Measurement measured, run.Finish(load::MakePlan(wanted)));
    result.rows.push_back(measured.row);
    if (measured.row.errors > 0) {
      result.errors +=
          std::string(policy) + ": " + load::ErrorLine(measured.row, measured.outcomes);
    }
  }
  line.Clear();
  return result;
}

bool DemoResult::cured() const {
  const load::Row &trap = rows[0], &cure = rows[1];
  return trap.errors + cure.errors == 0 && cure.hit_ratio > trap.hit_ratio &&
         cure.ttft_p99_s < trap.ttft_p99_s;
}

std::string DemoResult::Meaning() const {
  const load::Row &trap = rows[0], &cure = rows[1];
  return fmt::format(
      "Same engines, same requests: sent to where their prefix is cached, {:.0f} % of the prompt "
      "tokens are already there instead of {:.0f} %, the slowest first token comes {:.1f} x sooner "
      "and {:.1f} x the requests are served, because {:.0f} % of engine time no longer goes into "
      "computing the same tool schemas again.",
      100 * cure.hit_ratio, 100 * trap.hit_ratio, trap.ttft_p99_s / cure.ttft_p99_s,
      cure.requests_per_s / trap.requests_per_s,
      100 * (trap.recompute_share - cure.recompute_share));
}

}  // namespace hidane::cli
