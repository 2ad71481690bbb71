#include <CLI/CLI.hpp>

#include <csignal>
#include <exception>

#include "cli/command.h"
#include "cli/version.h"

int main(int argc, char** argv) {
  using namespace hidane::cli;
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app{"Hidane keeps KV caches warm for everybody who shares an LLM cluster.", "hidane"};
  app.set_version_flag("--version", VersionLine());
  app.set_help_all_flag("--help-all", "Help of every subcommand");
  app.require_subcommand(1);
  app.footer("hidane SUBCOMMAND --help shows examples.");
  Exit exit = Exit::kDone;
  AddUp(app, exit);
  AddGateway(app, exit);
  AddEngine(app, exit);
  AddLoad(app, exit);
  AddSim(app, exit);
  AddExplain(app, exit);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(Exit::kUsage);
  } catch (const std::exception& error) {
    return static_cast<int>(Report({hidane::Code::kInternal, error.what(), {}}));
  }
  return static_cast<int>(exit);
}
