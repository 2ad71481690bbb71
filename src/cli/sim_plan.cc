#include "cli/sim_plan.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "base/json_out.h"
#include "cli/signals.h"
#include "cli/sim_jobs.h"
#include "cli/terminal.h"
#include "routing/router.h"
#include "sim/matrix.h"
#include "sim/planner_answer.h"

namespace hidane::cli {
namespace {

constexpr uint32_t kReplicasMost = 4'096;

/// What is planned for, once the options are understood.
struct Plan {
  sim::PlanDemand demand;
  sim::GpuSetup gpu;
  std::vector<std::string> policies;
  uint32_t start = 1, most = 1;
  uint64_t seed = 1;
};

Result<sim::GpuSetup> GpuOf(const std::string& model, const std::string& gpu) {
  if (model.empty() || gpu.starts_with(model)) return sim::FindGpuSetup(gpu);
  const bool untold = gpu == sim::MatrixOptions{}.gpu;
  return sim::FindGpuSetup(untold ? model : model + "-" + gpu);
}

Result<Plan> Understand(const PlanOptions& options, const CommonOptions& common) {
  Plan plan{.demand = options.demand, .gpu = {}, .policies = common.policies, .seed = common.seed};
  HIDANE_TRY(plan.demand.slo_ttft, ParseDuration(options.slo_ttft));
  HIDANE_TRY(plan.gpu, GpuOf(options.model, common.gpu));
  HIDANE_CHECK_OK(Check(plan.demand, plan.gpu));
  const auto known = routing::Router::Policies();
  for (const std::string& policy : plan.policies) {
    if (std::ranges::find(known, policy) != known.end()) continue;
    return Fail(Code::kInvalidArgument, "no policy " + policy, "policy");
  }
  if (plan.policies.empty()) plan.policies.assign(known.begin(), known.end());
  plan.start = ReplicasAtLeast(plan.demand, plan.gpu);
  if (plan.start > kReplicasMost) {
    return Fail(Code::kInvalidArgument,
                fmt::format("{} requests/s need at least {} replicas; {} are the most",
                            plan.demand.rate_per_s, plan.start, kReplicasMost),
                "rate");
  }
  plan.most = std::min(std::max(64u, 16 * plan.start), kReplicasMost);
  return plan;
}

Result<std::vector<sim::PlanRow>> Search(const Plan& plan, SimEffort& effort) {
  ProgressLine line;
  const TimePoint begun = SteadyClock().Now();
  std::vector<sim::PlanRow> rows;
  for (const std::string& policy : plan.policies) {
    const sim::Probe probe = [&](uint32_t replicas) -> Result<sim::PlanTrial> {
      const auto go_on = [&] {
        line.Show(fmt::format("plan: policy {}/{}: {}, {} replicas", rows.size() + 1,
                              plan.policies.size(), policy, replicas));
        return !WaitForStop(std::chrono::milliseconds(0));
      };
      HIDANE_TRY(const sim::PlanTrial trial,
                 TryReplicas(plan.demand, plan.gpu, policy, replicas, plan.seed, go_on));
      ++effort.runs;
      effort.events += trial.events;
      effort.steps += trial.steps;
      return trial;
    };
    HIDANE_TRY(sim::PlanRow row, sim::PlanPolicy(policy, plan.start, plan.most, probe));
    rows.push_back(std::move(row));
  }
  effort.wall_s = Seconds(SteadyClock().Now() - begun);
  return rows;
}

std::string Percent(double ratio) {
  return std::isnan(ratio) ? "-" : fmt::format("{:.1f} %", ratio * 100);
}

std::string Table(const std::vector<sim::PlanRow>& rows, const Plan& plan) {
  constexpr std::string_view kLine =
      "{:<13}  {:>8}  {:>8}  {:>7}  {:>9}  {:>9}  {:>7}  {:>8}  {:>8}\n";
  std::string out = fmt::format(fmt::runtime(kLine), "policy", "replicas", "for rate", "hit",
                                "TTFT p50", "TTFT p99", "static", "KV held", "prefixes");
  for (const sim::PlanRow& row : rows) {
    const auto& trial = row.least ? row.least : row.sustains;
    const std::string needs =
        row.least ? fmt::format("{}", row.least->replicas) : fmt::format("> {}", plan.most);
    if (!trial) {
      out += fmt::format("{:<13}  {:>8}  {:>8}\n", row.policy, needs, needs);
      continue;
    }
    const sim::Row& r = trial->row;
    out += fmt::format(fmt::runtime(kLine), row.policy, needs,
                       row.least ? "" : fmt::format("{}", trial->replicas), Percent(r.hit_ratio),
                       fmt::format("{:.3f} s", r.ttft_p50_s), fmt::format("{:.3f} s", r.ttft_p99_s),
                       Percent(r.static_prefill_share), Percent(trial->kv_held),
                       Percent(PrefixShare(plan.demand, plan.gpu, trial->replicas)));
  }
  return out;
}

std::string Question(const Plan& plan) {
  const sim::PlanDemand& d = plan.demand;
  return fmt::format(
      "{} tenants{}, {} static + {} own tokens, {} out, {} requests/s on {}{}; TTFT p99 <= {} s, "
      "seed {}\n",
      d.tenants, d.zipf_s > 0 ? fmt::format(" (Zipf {})", d.zipf_s) : "", d.static_tokens,
      d.own_tokens, d.output_tokens, d.rate_per_s, plan.gpu.name,
      d.params.keep_warm ? ", kept warm" : "", Seconds(d.slo_ttft), plan.seed);
}

void AppendTrial(std::string_view key, const std::optional<sim::PlanTrial>& trial, const Plan& plan,
                 JsonWriter& w) {
  w.Key(key);
  if (!trial) {
    w.Null();
    return;
  }
  w.BeginObject().Field("replicas", trial->replicas).Field("hit_ratio", trial->row.hit_ratio);
  w.Field("ttft_p50_s", trial->row.ttft_p50_s).Field("ttft_p99_s", trial->row.ttft_p99_s);
  w.Field("requests_per_s", trial->row.requests_per_s);
  w.Field("static_prefill_share", trial->row.static_prefill_share);
  w.Field("kv_held_share", trial->kv_held);
  w.Field("prefix_kv_share", PrefixShare(plan.demand, plan.gpu, trial->replicas)).EndObject();
}

std::string Json(const std::vector<sim::PlanRow>& rows, const Plan& plan, const SimEffort& effort,
                 const std::string& answer) {
  const sim::PlanDemand& d = plan.demand;
  JsonWriter w;
  w.BeginObject().Key("meta").Raw(SimMeta(plan.seed, effort)).Key("plan").BeginObject();
  w.Field("tenants", d.tenants).Field("zipf", d.zipf_s).Field("static_tokens", d.static_tokens);
  w.Field("own_tokens", d.own_tokens).Field("output_tokens", d.output_tokens);
  w.Field("rate_per_s", d.rate_per_s).Field("slo_ttft_s", Seconds(d.slo_ttft));
  w.Field("gpu", plan.gpu.name).Field("keep_warm", d.params.keep_warm ? "on" : "off");
  w.Field("replicas_tried", plan.most).EndObject();
  w.Key("rows").BeginArray();
  for (const sim::PlanRow& row : rows) {
    w.BeginObject().Field("policy", row.policy);
    AppendTrial("meets_slo", row.least, plan, w);
    AppendTrial("sustains_rate", row.least ? row.least : row.sustains, plan, w);
    w.EndObject();
  }
  w.EndArray().Field("answer", answer).EndObject();
  return w.Take();
}

}  // namespace

Result<Duration> ParseDuration(std::string_view text) {
  constexpr double kDay = 86'400;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const double s = unit == "ms" ? value / 1e3 : value;
  if (error == std::errc() && (unit == "s" || unit == "ms") && s >= 1e-3 && s <= kDay) {
    return FromSeconds(s);
  }
  return Fail(Code::kInvalidArgument, fmt::format("\"{}\" is no time such as 1s or 300ms", text),
              "slo-ttft");
}

Exit RunPlan(const PlanOptions& options, const CommonOptions& common, const std::string& json) {
  const auto plan = Understand(options, common);
  if (!plan) return Report(plan.error(), "hidane sim --help says what --plan takes");
  SimEffort effort;
  const auto rows = Search(*plan, effort);
  if (!rows) return Report(rows.error());
  const std::string answer = PlanAnswer(*rows, plan->demand, plan->gpu, plan->most);
  std::FILE* const out = json == "-" ? stderr : stdout;
  fmt::print(out, "{}\n{}\n{}{}{} runs in {:.1f} s\n", Question(*plan), Table(*rows, *plan), answer,
             answer.empty() ? "" : "\n\n", effort.runs, effort.wall_s);
  if (json.empty()) return Exit::kDone;
  const auto written = WriteDocument(json, Json(*rows, *plan, effort, answer));
  return written ? Exit::kDone
                 : Report(written.error(), "pass a file in a folder you may write to");
}

void AddPlanOptions(CLI::App& command, PlanOptions& o) {
  auto& d = o.demand;
  command.add_flag("--plan", o.wanted,
                   "How many replicas each policy needs for --tenants, --rate and --slo-ttft");
  const auto tokens = CLI::Range(1u, 10'000'000u);
  command.add_option("--tenants", d.tenants, "--plan: prefixes in use")
      ->check(CLI::Range(1u, 100'000u));
  command.add_option("--zipf", d.zipf_s, "--plan: their popularity, 0 uniform")
      ->check(CLI::Range(0.0, 10.0));
  command.add_option("--static-tokens", d.static_tokens, "--plan: of a prefix")->check(tokens);
  command.add_option("--own-tokens", d.own_tokens, "--plan: of a request besides")->check(tokens);
  command.add_option("--output-tokens", d.output_tokens, "--plan: of an answer")->check(tokens);
  command.add_option("--rate", d.rate_per_s, "--plan: requests a second, Poisson")
      ->check(CLI::Range(0.01, 100'000.0));
  command.add_option("--model", o.model, "--plan: with --gpu h100, such as 8b-bf16");
  command.add_option("--slo-ttft", o.slo_ttft, "--plan: time to first token at p99, 1s or 300ms");
}

}  // namespace hidane::cli
