#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <sstream>

#include "cli/command.h"
#include "cli/explain_text.h"
#include "load/runner.h"

namespace hidane::cli {
namespace {

constexpr const char* kUrlHint =
    "; --url is the gateway's admin listener (admin.listen, http://127.0.0.1:8081 unless set)";

struct Options {
  std::string url = "http://127.0.0.1:8081", path = "/v1/chat/completions", body;
  uint32_t last = 0;
  bool json = false;
};

Result<std::string> ReadBody(const std::string& name) {
  std::ostringstream text;
  if (name == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::ifstream file(name);
  if (file) text << file.rdbuf();
  if (!file || !text) return Fail(Code::kInvalidArgument, fmt::format("cannot read {}", name));
  return text.str();
}

/// The gateway's answer, or its error in its own words.
Result<std::string> Ask(const Options& options) {
  const load::Target gateway{.url = options.url};
  Result<load::HttpAnswer> answer = Fail(Code::kInternal, "");
  if (options.last > 0) {
    answer = load::Call(gateway, "GET", fmt::format("/hidane/decisions?n={}", options.last));
  } else {
    HIDANE_TRY(const std::string body, ReadBody(options.body));
    answer = load::Call(gateway, "POST", "/hidane/explain?path=" + options.path, body);
  }
  if (!answer) return Fail(Code::kUnavailable, answer.error().what + kUrlHint);
  if (answer->status == 200) return std::move(answer->body);
  const std::string message = ErrorMessage(answer->body);
  if (message.starts_with("no such route"))
    return Fail(Code::kUnavailable, fmt::format("{}: {}{}", options.url, message, kUrlHint));
  if (answer->status >= 500) return Fail(Code::kUnavailable, "the gateway says: " + message);
  const std::string what = options.body == "-" ? "the body on stdin" : options.body;
  return Fail(Code::kInvalidArgument, fmt::format("{}: {}", what, message));
}

Exit Run(const Options& options) {
  if (options.body.empty() == (options.last == 0)) {
    return Report({Code::kInvalidArgument, "nothing to explain", {}},
                  "pass either --body FILE or --last N");
  }
  const auto answer = Ask(options);
  if (!answer) return Report(answer.error());
  if (options.json) {
    fmt::print("{}\n", *answer);
    return Exit::kDone;
  }
  const auto text = options.last > 0 ? DecisionsText(*answer) : ExplainText(*answer);
  if (!text) return Report(text.error(), "is it as new as this program?");
  fmt::print("{}", *text);
  return Exit::kDone;
}

}  // namespace

void AddExplain(CLI::App& app, Exit& exit) {
  auto* command = app.add_subcommand(
      "explain", "Where a request would go and why, without sending it; or the last decisions");
  auto options = std::make_shared<Options>();
  command->option_defaults()->always_capture_default();
  command->add_option("--url", options->url, "The gateway's admin listener, http://host:port");
  auto* body =
      command->add_option("--body", options->body, "File with the request's JSON body; - is stdin");
  command->add_option("--path", options->path, "Path that the body would be posted to")
      ->needs(body);
  command->add_option("--last", options->last, "Print the last N decisions and what came of them")
      ->check(CLI::Range(1u, 65'536u))
      ->excludes(body);
  command->add_flag("--json", options->json, "Print the gateway's JSON as it is");
  command->footer(
      "Examples:\n"
      "  hidane explain --body request.json\n"
      "  hidane explain --url http://gateway:8081 --body request.json --path /v1/completions\n"
      "  hidane explain --last 20");
  command->callback([options, &exit] { exit = Run(*options); });
}

}  // namespace hidane::cli
