#include "cli/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/command.h"
#include "cli/signals.h"
#include "load/measure.h"

namespace hidane::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kStartLimit = std::chrono::minutes(3);
constexpr auto kProbeLimit = std::chrono::seconds(20);

/// The words after "listening on ": URLs, with "admin" between them.
Result<std::string> WaitUntilListening(Child& child, ProgressLine& line) {
  const auto start = Clock::now();
  while (Clock::now() - start < kStartLimit) {
    HIDANE_TRY(const auto first, child.FirstLine(std::chrono::milliseconds(100)));
    constexpr std::string_view kHello = "listening on ";
    if (first && first->starts_with(kHello)) return first->substr(kHello.size());
    if (WaitForStop(std::chrono::milliseconds(0))) return Fail(Code::kCancelled, "stopped");
    line.Show(fmt::format("starting {}: {:.0f} s", child.name(),
                          std::chrono::duration<double>(Clock::now() - start).count()));
  }
  return Fail(Code::kDeadlineExceeded, child.name() + " is not up after three minutes");
}

/// The gateway serves at once, but has yet to ask its engines what they have.
Status WaitUntilModelsKnown(const std::string& gateway_url, ProgressLine& line) {
  const auto start = Clock::now();
  for (;;) {
    const auto model = load::FirstModel({.url = gateway_url});
    if (model) return {};
    if (Clock::now() - start > kProbeLimit) return Fail(model.error());
    if (WaitForStop(std::chrono::milliseconds(50))) return Fail(Code::kCancelled, "stopped");
    line.Show("the gateway asks its engines");
  }
}

}  // namespace

Result<Fleet> Fleet::Start(const FleetOptions& options, ProgressLine& line) {
  HIDANE_TRY(const std::string logs, CacheDir("logs"));
  Fleet fleet;
  HIDANE_CHECK_OK(fleet.StartEngines(options, logs, line));
  HIDANE_CHECK_OK(fleet.StartGateway(options, logs, line));
  return fleet;
}

Status Fleet::StartEngines(const FleetOptions& options, const std::string& logs,
                           ProgressLine& line) {
  const uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
  const uint32_t threads =
      options.threads > 0 ? options.threads : std::max(1u, cores / options.engines);
  for (uint32_t i = 0; i < options.engines; ++i) {
    const std::string name = fmt::format("engine-{}", i);
    HIDANE_TRY(
        Child child,
        Child::Start(name,
                     {"engine", "--model", options.model, "--listen", "127.0.0.1:0", "--kv-tokens",
                      std::to_string(options.kv_tokens), "--threads", std::to_string(threads)},
                     logs + "/" + name + ".log"));
    children_.push_back(std::move(child));
    // The first one packs the weights; the others then find them in the shared cache.
    if (i == 0) {
      HIDANE_TRY(const std::string url, WaitUntilListening(children_[0], line));
      engine_urls_.push_back(url);
    }
  }
  for (uint32_t i = 1; i < options.engines; ++i) {
    HIDANE_TRY(const std::string url, WaitUntilListening(children_[i], line));
    engine_urls_.push_back(url);
  }
  return {};
}

Status Fleet::StartGateway(const FleetOptions& options, const std::string& logs,
                           ProgressLine& line) {
  std::vector<std::string> args = {"gateway", "--listen", fmt::format("127.0.0.1:{}", options.port),
                                   "--set", "admin.listen=127.0.0.1:0"};
  for (const std::string& url : engine_urls_) {
    args.push_back("--upstream");
    args.push_back(url);
  }
  HIDANE_TRY(Child gateway, Child::Start("gateway", args, logs + "/gateway.log"));
  children_.push_back(std::move(gateway));
  HIDANE_TRY(const std::string urls, WaitUntilListening(children_.back(), line));
  constexpr std::string_view kAdmin = " admin ";
  const size_t at = urls.find(kAdmin);
  if (at == std::string::npos) return Fail(Code::kInternal, "the gateway has no admin listener");
  gateway_url_ = urls.substr(0, at);
  admin_url_ = urls.substr(at + kAdmin.size());
  return WaitUntilModelsKnown(gateway_url_, line);
}

std::vector<std::string> Fleet::TakeEnded() {
  std::vector<std::string> ended;
  for (auto child = children_.begin(); child != children_.end();) {
    if (!child->Ended()) {
      ++child;
      continue;
    }
    ended.push_back(fmt::format("{} has ended: {}", child->name(), child->LastLogLine()));
    child = children_.erase(child);
  }
  return ended;
}

Fleet::~Fleet() {
  for (auto child = children_.rbegin(); child != children_.rend(); ++child) child->AskToStop();
  while (!children_.empty()) children_.pop_back();
}

}  // namespace hidane::cli
