#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/command.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "load/measure.h"

namespace hidane::cli {
namespace {

struct Options {
  load::WorkloadOptions workload;
  std::string url = "http://127.0.0.1:8080", api_key_env, trace, label = "as is", json;
  std::vector<std::string> engines;
  uint32_t concurrency = 8, warmups = 1;
  double timeout_s = 120;

  bool open_loop() const { return workload.rate > 0 || !trace.empty(); }
};

Result<load::Target> TargetOf(const Options& options) {
  load::Target target{.url = options.url, .timeout = FromSeconds(options.timeout_s)};
  if (options.api_key_env.empty()) return target;
  const char* key = std::getenv(options.api_key_env.c_str());
  if (key == nullptr) {
    return Fail(Code::kInvalidArgument, fmt::format("{} is not set", options.api_key_env));
  }
  target.api_key = key;
  return target;
}

Result<std::vector<load::PlannedRequest>> PlanOf(const Options& options) {
  if (options.trace.empty()) return load::MakePlan(options.workload);
  std::ifstream file(options.trace);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return Fail(Code::kInvalidArgument, fmt::format("cannot read {}", options.trace));
  return load::ParseTrace(text.str(), options.workload.requests);
}

struct Measured {
  load::Measurement run;
  size_t warmups;
};

/// All of it but the printing.
Result<Measured> MeasureAll(Options& options) {
  HIDANE_TRY(load::Target target, TargetOf(options));
  HIDANE_TRY(const auto plan, PlanOf(options));
  if (options.workload.model.empty()) {
    HIDANE_TRY(options.workload.model, load::FirstModel(target));
  }
  HIDANE_TRY(const load::Workload workload, load::Calibrate(target, options.workload));
  load::Setup setup{.target = std::move(target)};
  for (const std::string& url : options.engines) setup.engines.push_back({.url = url});
  setup.run.concurrency = options.open_loop() ? 0 : options.concurrency;
  ProgressLine line;
  setup.run.on_progress = ShowProgress(line, "warm-up");
  const uint32_t rounds = options.trace.empty() ? options.warmups : 0;
  std::vector<load::Outcome> warmup;
  for (uint32_t round = 0; round < rounds; ++round) {
    HIDANE_TRY(const auto outcomes, load::WarmUp(setup, workload, round));
    warmup.insert(warmup.end(), outcomes.begin(), outcomes.end());
  }
  setup.run.on_progress = ShowProgress(line, options.label);
  HIDANE_TRY(load::Measurement run, load::Measure(setup, workload, plan, options.label, warmup));
  return Measured{std::move(run), warmup.size()};
}

Exit Run(Options& options) {
  BlockStopSignals();
  const auto measured = MeasureAll(options);
  if (!measured) return Report(measured.error(), "is --url right and the server up?");
  const auto& [row, outcomes] = measured->run;
  const bool open = options.open_loop();
  // With `--json -` stdout is the document's alone.
  std::FILE* const out = options.json == "-" ? stderr : stdout;
  fmt::print(out, "{}\nTTFT from the {} send time; {} warm-up requests before, not counted.\n\n{}",
             load::RowsTable({&row, 1}), open ? "intended" : "actual", measured->warmups,
             load::TtftHistogram(outcomes, open, 50, IsTerminal(fileno(out))));
  if (row.shares_estimated) {
    fmt::print(out, "\n~ estimated from token counts; --engine URL reads the engines' clocks.\n");
  }
  fmt::print(out, "{}", load::ErrorLine(row, outcomes));
  if (!options.json.empty()) {
    const auto meta =
        load::MakeMeta({Version(), Commit()}, "load", options.workload.seed, CommandLine());
    const auto written = WriteDocument(options.json, load::RowsJson(meta, {&row, 1}));
    if (!written) return Report(written.error(), "pass a file in a folder you may write to");
  }
  return row.errors == row.requests ? Exit::kMissing : Exit::kDone;
}

void AddOptions(CLI::App& command, Options& o) {
  auto& w = o.workload;
  const auto count = CLI::Range(1u, 10'000'000u);
  command.add_option("--url", o.url, "Any OpenAI-compatible server, http://host:port");
  command.add_option("--model", w.model, "Model name; default: the first that the server lists");
  command.add_option("--api-key-env", o.api_key_env, "Environment variable that holds the API key");
  command.add_option("--tenants", w.tenants, "Agents with a static prefix each")
      ->check(CLI::Range(1u, 100'000u));
  command.add_option("--static-tokens", w.static_tokens, "Tools and system text of a tenant")
      ->check(CLI::Range(16u, 1'000'000u));
  command.add_option("--own-tokens", w.own_tokens, "Own text of a request, at most")->check(count);
  command.add_option("--output-tokens", w.output_tokens, "max_tokens of a request")->check(count);
  command.add_option("--requests", w.requests, "Requests that count")->check(count);
  auto* rate = command.add_option("--rate", w.rate, "Open loop: Poisson arrivals a second")
                   ->check(CLI::Range(1e-3, 1e6));
  command.add_option("--concurrency", o.concurrency, "Closed loop: clients")
      ->check(CLI::Range(1u, 10'000u))
      ->excludes(rate);
  command.add_option("--zipf", w.zipf_s, "Popularity of tenants: 0 uniform, 1 Zipf's law")
      ->check(CLI::Range(0.0, 10.0));
  command.add_option("--trace", o.trace, "Mooncake trace (JSON lines) to replay, open loop")
      ->excludes(rate);
  command.add_option("--seed", w.seed, "Same seed, same requests");
  command.add_option("--warmup", o.warmups, "Requests a tenant before the run, not counted")
      ->check(CLI::Range(0u, 1'000u));
  command.add_flag("--ignore-eos", w.ignore_eos, "Ask for exactly --output-tokens (vLLM's field)");
  command.add_option("--timeout", o.timeout_s, "Longest request, seconds")
      ->check(CLI::Range(0.1, 86'400.0));
  command.add_option("--engine", o.engines, "URL of an engine whose /metrics to read; repeatable")
      ->allow_extra_args(false);
  command.add_option("--label", o.label, "The row's `policy`");
  command.add_option("--json", o.json, "Also write the row as JSON to this file; - is stdout");
}

}  // namespace

void AddLoad(CLI::App& app, Exit& exit) {
  auto* command = app.add_subcommand(
      "load", "Multi-tenant agent load against any OpenAI-compatible URL: is it in the trap?");
  auto options = std::make_shared<Options>();
  command->option_defaults()->always_capture_default();
  AddOptions(*command, *options);
  command->footer(
      "Examples:\n"
      "  hidane load --url http://127.0.0.1:8000 --tenants 16 --concurrency 8 --requests 200\n"
      "  hidane load --url http://gateway:8080 --rate 12 --requests 2000 --zipf 1 --json row.json");
  command->callback([options, &exit] { exit = Run(*options); });
}

}  // namespace hidane::cli
