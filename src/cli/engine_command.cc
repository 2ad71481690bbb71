#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <stop_token>
#include <thread>

#include "cli/command.h"
#include "cli/explain_text.h"
#include "cli/kv_text.h"
#include "cli/signals.h"
#include "cli/vocab.h"
#include "engine/engine.h"
#include "engine/kv_policy.h"
#include "load/runner.h"
#include "model/gguf.h"
#include "model/model.h"
#include "serve/serve.h"
#include "text/text.h"
#include "vtoken/policy.h"

namespace hidane::cli {
namespace {

struct Options {
  std::string model, listen = "127.0.0.1:8000", served_name, weight_cache, precision = "auto",
                     kv_mode = "exact";
  uint32_t kv_tokens = 16'384, block_size = 16;
  bool no_weight_cache = false;
  uint32_t threads = std::max(1u, std::thread::hardware_concurrency());
  engine::EngineOptions engine;
};

model::Precision PrecisionOf(const std::string& name) {
  static const std::map<std::string, model::Precision> kNames = {{"auto", model::Precision::kAuto},
                                                                 {"f32", model::Precision::kF32},
                                                                 {"bf16", model::Precision::kBf16}};
  return kNames.at(name);
}

Result<std::unique_ptr<model::Model>> LoadModel(const Options& options) {
  model::ModelOptions model;
  model.precision = PrecisionOf(options.precision);
  model.block_size = options.block_size;
  model.kv_blocks = (options.kv_tokens + options.block_size - 1) / options.block_size;
  model.threads = options.threads;
  if (!options.no_weight_cache) {
    model.weight_cache_dir = options.weight_cache;
    if (model.weight_cache_dir.empty()) {
      HIDANE_TRY(model.weight_cache_dir, CacheDir("weights"));
    }
  }
  return model::Model::Load(options.model, model);
}

Result<std::unique_ptr<text::TextModel>> LoadText(const std::string& path) {
  HIDANE_TRY(const model::GgufFile file, model::GgufFile::Open(path));
  HIDANE_TRY(const text::VocabSource source, VocabOf(file.gguf));
  return text::TextModel::Load(source);
}

/// The first signal begins the drain, a second one ends at once.
void StopOnSignal(std::stop_source& stop, const std::stop_token& ended) {
  while (!ended.stop_requested()) {
    if (!WaitForStop(std::chrono::milliseconds(50))) continue;
    if (stop.stop_requested()) std::_Exit(static_cast<int>(Exit::kDone));
    stop.request_stop();
  }
}

Exit Run(Options& options) {
  if (options.model.empty()) {
    return Report({Code::kInvalidArgument, "no model to serve", {}}, "pass --model FILE.gguf");
  }
  options.engine.kv_policy.mode = *vtoken::ModeOf(options.kv_mode);  // checked by the parser
  if (const Status policy = engine::CheckKvPolicy(options.engine.kv_policy, UINT64_MAX); !policy) {
    return Report(policy.error(), "pass another --kv-policy, --kv-budget or --kv-keep");
  }
  BlockStopSignals();
  auto text = LoadText(options.model);
  if (!text) return Report(text.error(), "pass a llama-architecture .gguf file with --model");
  auto model = LoadModel(options);
  if (!model)
    return Report(model.error(), "another --model, fewer --kv-tokens or --no-weight-cache");

  // Kernel threads belong to the engine's work too.
  if (options.threads > 1) options.engine.busy_clock = &engine::ProcessCpuClock();
  obs::Registry registry;
  const auto engine = engine::Engine::Create(std::move(*model), **text, options.engine, registry);
  serve::ServeOptions serve{.listen = options.listen, .model_id = options.served_name};
  if (serve.model_id.empty()) serve.model_id = std::filesystem::path(options.model).stem().string();
  const std::string host = options.listen.substr(0, options.listen.rfind(':'));
  serve.on_listening = [&host](uint16_t port) {
    fmt::print("listening on http://{}:{}\n", host, port);
    std::fflush(stdout);
  };
  std::stop_source stop;
  const std::jthread waiter([&stop](const std::stop_token& ended) { StopOnSignal(stop, ended); });
  const Status served = serve::Run(serve, *engine, **text, registry, stop.get_token());
  return served ? Exit::kDone : Report(served.error(), "pass another --listen address");
}

/// `hidane engine kv`: a running engine's KV memory as a picture.
Exit ShowKv(const std::string& url, bool json) {
  const auto answer = load::Call({.url = url}, "GET", "/hidane/kv");
  if (!answer) return Report(answer.error(), "pass the --url of a running hidane engine");
  if (answer->status != 200) {
    return Report({Code::kUnavailable, ErrorMessage(answer->body), {}}, "is it a hidane engine?");
  }
  if (json) {
    fmt::print("{}\n", answer->body);
    return Exit::kDone;
  }
  const auto text = KvText(answer->body, 100);
  if (!text) return Report(text.error(), "is it as new as this program?");
  fmt::print("{}", *text);
  return Exit::kDone;
}

void AddKv(CLI::App& engine, Exit& exit) {
  auto* command = engine.add_subcommand(
      "kv", "Which tokens of a running engine's requests live, and in how many blocks");
  auto url = std::make_shared<std::string>("http://127.0.0.1:8000");
  auto json = std::make_shared<bool>(false);
  command->add_option("--url", *url, "The engine, http://host:port")->capture_default_str();
  command->add_flag("--json", *json, "Print the engine's JSON as it is");
  command->callback([url, json, &exit] { exit = ShowKv(*url, *json); });
}

}  // namespace

void AddEngine(CLI::App& app, Exit& exit) {
  auto* command = app.add_subcommand("engine", "Serves one GGUF model: the OpenAI API on one port");
  auto options = std::make_shared<Options>();
  Options& o = *options;
  command->option_defaults()->always_capture_default();
  command->add_option("--model", o.model, "GGUF file (llama architecture); required");
  command->add_option("--listen", o.listen, "host:port; port 0 picks a free one");
  command->add_option("--served-model-name", o.served_name,
                      "Name in /v1/models; default: the file's");
  command->add_option("--kv-tokens", o.kv_tokens, "KV memory, in tokens")
      ->check(CLI::Range(256u, 100'000'000u));
  command->add_option("--block-size", o.block_size, "Tokens in a KV block")
      ->check(CLI::Range(1u, 256u));
  command
      ->add_option("--max-num-batched-tokens", o.engine.max_num_batched_tokens,
                   "Tokens computed in one step: prefill is cut into chunks of at most this")
      ->check(CLI::Range(1u, 1'000'000u));
  command->add_option("--max-num-seqs", o.engine.max_num_seqs, "Requests computed at a time")
      ->check(CLI::Range(1u, 4096u));
  command->add_option("--max-queue", o.engine.max_queue, "Requests that may wait; more get 429")
      ->check(CLI::Range(1u, 1'000'000u));
  command->add_option(
      "--kv-policy", o.engine.kv_policy.name,
      fmt::format("Eviction from the KV cache: none, or one of {} (docs/vtoken.md). A request may "
                  "bring its own: \"kv_policy\": {{\"name\": \"h2o\", \"budget\": 512}}",
                  fmt::join(vtoken::PolicyNames(), ", ")));
  command
      ->add_option("--kv-budget", o.engine.kv_policy.budget,
                   "Tokens that stay of each request at most; 0 = no limit")
      ->check(CLI::Range(0u, 100'000'000u));
  command->add_option("--kv-keep", o.engine.kv_policy.keep, "Share of them that stays at most")
      ->check(CLI::Range(0.0, 1.0));
  command
      ->add_option("--kv-mode", o.kv_mode,
                   "exact: evicted tokens give their memory back at once; masked: when somebody "
                   "lacks it; lazy: then, and they are read until then")
      ->check(CLI::IsMember({"exact", "masked", "lazy"}));
  command->add_option("--threads", o.threads, "Threads that compute")->check(CLI::Range(1u, 1024u));
  command
      ->add_option("--precision", o.precision, "auto: bf16 where the CPU multiplies it, else f32")
      ->check(CLI::IsMember({"auto", "f32", "bf16"}));
  command->add_option(
      "--weight-cache", o.weight_cache,
      "Folder for prepacked weights that engines share; default: in ~/.cache/hidane");
  command->add_flag("--no-weight-cache", o.no_weight_cache, "Pack the weights in memory");
  command->footer(
      "Examples:\n"
      "  hidane engine --model SmolLM2-135M-Instruct.Q4_1.gguf --listen 127.0.0.1:8000\n"
      "  hidane engine --model m.gguf --kv-tokens 65536 --threads 16 --precision bf16\n"
      "  hidane engine --model m.gguf --kv-policy h2o --kv-budget 1024\n"
      "  hidane engine kv --url http://127.0.0.1:8000");
  AddKv(*command, exit);
  command->callback([options, command, &exit] {
    if (command->get_subcommands().empty()) exit = Run(*options);
  });
}

}  // namespace hidane::cli
