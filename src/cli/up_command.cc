#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "cli/command.h"
#include "cli/demo.h"
#include "cli/fleet.h"
#include "cli/signals.h"
#include "cli/version.h"

namespace hidane::cli {
namespace {

constexpr char kModelFile[] = "models/SmolLM2-135M-Instruct.Q4_1.gguf";

struct Options {
  FleetOptions fleet;
  bool no_demo = false, demo_only = false;
  std::string json;
  uint32_t static_tokens = 0;  // see DemoOf
};

/// --model, or the small model beside the working directory or the build tree.
Result<std::string> FindModel(const std::string& asked) {
  namespace fs = std::filesystem;
  if (!asked.empty()) {
    if (fs::is_regular_file(asked)) return asked;
    return Fail(Code::kNotFound, "no model file " + asked);
  }
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& dir : {fs::current_path(), program, program / "../.."}) {
    if (fs::is_regular_file(dir / kModelFile))
      return (dir / kModelFile).lexically_normal().string();
  }
  return Fail(Code::kNotFound, fmt::format("no {} here", kModelFile));
}

void ShowResult(const DemoResult& demo, const DemoOptions& options, uint32_t engines,
                std::FILE* out) {
  fmt::print(
      out,
      "\n{} engines, {} agents with {} tokens of tool schemas each, {} clients; room for {:.1f} "
      "agents per engine.\n{} warm-up requests of each agent before each run, not counted.\n\n"
      "{}\n{}{}\n\n",
      engines, options.tenants, options.static_tokens, options.clients,
      1.30 * options.tenants / engines, demo.warmups, load::RowsTable(demo.rows), demo.errors,
      demo.Meaning());
  std::fflush(out);
}

Result<DemoResult> Show(const Options& options, const Fleet& fleet, DemoOptions demo,
                        ProgressLine& line) {
  demo.gateway_url = fleet.gateway_url();
  demo.admin_url = fleet.admin_url();
  demo.engine_urls = fleet.engine_urls();
  HIDANE_TRY(DemoResult result, RunDemo(demo, line));
  // With `--json -` stdout is the document's alone.
  ShowResult(result, demo, options.fleet.engines, options.json == "-" ? stderr : stdout);
  if (!options.json.empty()) {
    const auto meta = load::MakeMeta({Version(), Commit()}, "demo", demo.seed, CommandLine());
    HIDANE_CHECK_OK(WriteDocument(options.json, load::RowsJson(meta, result.rows)));
  }
  return result;
}

void KeepServing(Fleet& fleet, const std::string& model_file, ProgressLine& line) {
  fmt::print(
      "Serving until Ctrl-C:\n"
      "  gateway  {0}  (OpenAI API)\n"
      "  admin    {1}  (/metrics, /hidane/workers, /hidane/decisions)\n"
      "  engines  {2}\n\n"
      "  curl {0}/v1/chat/completions -H 'content-type: application/json' \\\n"
      "    -d '{{\"model\":\"{3}\",\"messages\":[{{\"role\":\"user\",\"content\":\"What is a KV "
      "cache?\"}}],"
      "\"max_tokens\":64}}'\n",
      fleet.gateway_url(), fleet.admin_url(), fmt::join(fleet.engine_urls(), " "),
      std::filesystem::path(model_file).stem().string());
  std::fflush(stdout);
  while (!WaitForStop(std::chrono::milliseconds(500))) {
    for (const std::string& text : fleet.TakeEnded()) line.Say("hidane: " + text);
  }
}

Exit Run(Options& options) {
  BlockStopSignals();
  const auto model = FindModel(options.fleet.model);
  if (!model) return Report(model.error(), "run tools/fetch_model.sh or pass --model FILE.gguf");
  options.fleet.model = *model;
  const auto logs = CacheDir("logs");
  if (!logs) return Report(logs.error(), "set XDG_CACHE_HOME to a folder you may write to");
  const DemoOptions demo = DemoOf(options.static_tokens);
  if (options.fleet.kv_tokens == 0) {
    options.fleet.kv_tokens = DemoKvTokens(demo, options.fleet.engines);
  }

  ProgressLine line;
  auto fleet = Fleet::Start(options.fleet, line);
  if (!fleet) {
    if (fleet.error().code == Code::kCancelled) return Exit::kDone;
    return Report(fleet.error(), "another --port, --model or fewer --engines");
  }
  line.Say(fmt::format("{} engines and the gateway are up", options.fleet.engines));
  if (!options.no_demo) {
    const auto shown = Show(options, *fleet, demo, line);
    line.Clear();
    if (!shown && shown.error().code == Code::kCancelled) return Exit::kDone;
    if (!shown) return Report(shown.error(), "see the logs in " + *logs);
    if (options.demo_only) return shown->cured() ? Exit::kDone : Exit::kNotSo;
  }
  KeepServing(*fleet, options.fleet.model, line);
  return Exit::kDone;
}

}  // namespace

void AddUp(CLI::App& app, Exit& exit) {
  auto* command = app.add_subcommand(
      "up",
      "Starts a gateway and four engines, shows the KV-cache trap and its cure, keeps serving");
  auto options = std::make_shared<Options>();
  FleetOptions& fleet = options->fleet;
  command->option_defaults()->always_capture_default();
  command->add_option("--engines", fleet.engines, "Engine processes")->check(CLI::Range(1u, 64u));
  command->add_option("--port", fleet.port, "The gateway's port on 127.0.0.1; 0 picks a free one");
  command->add_option("--kv-tokens", fleet.kv_tokens,
                      "KV memory of each engine; 0: 1.15 times its share of the agents' prefixes");
  command
      ->add_option("--static-tokens", options->static_tokens,
                   "Tool schemas of a demo agent; 0: 1000, or 600 on a CPU without bf16")
      ->check(CLI::Range(0u, 8'000u));
  command->add_option("--threads", fleet.threads, "Threads of each engine; 0: cores / engines");
  command->add_option("--model", fleet.model, std::string("GGUF file; default: ") + kModelFile);
  auto* no_demo = command->add_flag("--no-demo", options->no_demo, "Serve at once");
  command->add_flag("--demo-only", options->demo_only, "Show the trap, stop all, exit")
      ->excludes(no_demo);
  command->add_option("--json", options->json, "Write the demo's rows to this file; - is stdout");
  command->footer(
      "Examples:\n"
      "  hidane up\n"
      "  hidane up --demo-only --json -\n"
      "  hidane up --no-demo --engines 2 --port 9000 --kv-tokens 32768\n"
      "Exit code of --demo-only: 0 the cure shows, 1 it does not.");
  command->callback([options, &exit] { exit = Run(*options); });
}

}  // namespace hidane::cli
