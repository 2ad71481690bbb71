#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "cli/command.h"
#include "cli/signals.h"
#include "gateway/config.h"
#include "gateway/gateway.h"

namespace hidane::cli {
namespace {

struct Options {
  std::string file;
  std::vector<std::string> upstreams, sets;
  std::string listen, policy;
  bool check = false, print = false;
};

Result<gateway::ConfigSources> SourcesOf(const Options& options) {
  gateway::ConfigSources sources;
  if (!options.file.empty()) {
    std::ifstream file(options.file);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) {
      return Fail(Code::kInvalidArgument, fmt::format("cannot read {}", options.file));
    }
    sources.file_name = options.file;
    sources.file_text = text.str();
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    sources.environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  sources.sets = options.sets;
  if (!options.listen.empty()) sources.sets.push_back("server.listen=" + options.listen);
  if (!options.policy.empty()) sources.sets.push_back("routing.policy=" + options.policy);
  sources.upstreams = options.upstreams;
  return sources;
}

/// Serves until the first SIGTERM or Ctrl-C has drained it or a second one came.
void ServeUntilStopped(gateway::Gateway& gateway) {
  WaitForStop();
  gateway.Drain();
  std::atomic<bool> drained = false;
  std::thread joiner([&] {
    gateway.Join();
    drained = true;
  });
  while (!drained) {
    if (WaitForStop(std::chrono::milliseconds(50))) gateway.Stop();
  }
  joiner.join();
}

Exit Run(const Options& options) {
  const auto sources = SourcesOf(options);
  if (!sources) return Report(sources.error());
  auto config = gateway::LoadConfig(*sources);
  if (!config) return Report(config.error());
  if (options.print) fmt::print("{}", gateway::PrintConfig(**config));
  if (options.check && !options.print) fmt::print("configuration is valid\n");
  if (options.check || options.print) return Exit::kDone;

  BlockStopSignals();
  const std::string data_host = (*config)->server_listen(), admin_host = (*config)->admin_listen();
  auto gateway = gateway::Gateway::Start(std::move(*config));
  if (!gateway) {
    return Report(gateway.error(), "pass --listen or --set admin.listen=... another address");
  }
  const auto host = [](const std::string& address) {
    return address.substr(0, address.rfind(':'));
  };
  fmt::print("listening on http://{}:{}", host(data_host), (*gateway)->data_port());
  if ((*gateway)->admin_port() != 0) {
    fmt::print(" admin http://{}:{}", host(admin_host), (*gateway)->admin_port());
  }
  fmt::print("\n");
  std::fflush(stdout);
  ServeUntilStopped(**gateway);
  return Exit::kDone;
}

}  // namespace

void AddGateway(CLI::App& app, Exit& exit) {
  auto* command = app.add_subcommand(
      "gateway", "OpenAI-compatible proxy that sends each request where its prefix is cached");
  auto options = std::make_shared<Options>();
  command->add_option("-c,--config", options->file, "Configuration file (hidane.toml)");
  command->add_option("--upstream", options->upstreams, "URL of an engine; repeatable")
      ->allow_extra_args(false);
  command->add_option("--listen", options->listen, "Data listener, host:port (server.listen)");
  command->add_option("--policy", options->policy,
                      "How a worker is chosen (routing.policy), prefix unless said");
  command->add_option("--set", options->sets, "path.to.key=value; repeatable, wins over the file")
      ->allow_extra_args(false);
  command->add_flag("--check", options->check, "Validate the configuration and exit");
  command->add_flag("--print-config", options->print,
                    "Print the effective configuration, with the origin of each value, and exit");
  command->footer(
      "Examples:\n"
      "  hidane gateway --upstream http://10.0.0.1:8000 --upstream http://10.0.0.2:8000 \\\n"
      "                 --listen 0.0.0.0:8080\n"
      "  hidane gateway -c hidane.toml --set routing.policy=least_tokens\n"
      "  hidane gateway -c hidane.toml --check\n"
      "The first SIGTERM or Ctrl-C drains, a second one stops at once.");
  command->callback([options, &exit] { exit = Run(*options); });
}

}  // namespace hidane::cli
