#pragma once
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/terminal.h"
#include "load/report.h"

namespace hidane::cli {

/// The trap and its cure (contracts section 3): the same agents on the same engines through the
/// same gateway, once with round_robin and once with prefix.
struct DemoOptions {
  std::string gateway_url, admin_url;
  std::vector<std::string> engine_urls;
  uint32_t tenants = 16, static_tokens = 1000, own_tokens = 50, output_tokens = 24, clients = 8;
  uint32_t requests_min = 60, requests_max = 240;
  uint64_t seed = 1;
  Duration budget = std::chrono::seconds(150);  ///< for both runs, their warm-ups included
};

/// The demo with prompts of `static_tokens` static tokens and a twentieth of that of their own.
/// 0: what this CPU can prefill in time, 1,000 where it multiplies bf16 and 600 elsewhere.
DemoOptions DemoOf(uint32_t static_tokens);

struct DemoResult {
  std::vector<load::Row> rows = {};  ///< round_robin, prefix
  std::string errors = {};           ///< one line a policy that had any
  uint32_t warmups = 0;              ///< requests of each agent before each run, not counted

  /// The cure shows: no errors, more hits, an earlier first token at p99.
  bool cured() const;
  /// What the table means, in one sentence.
  std::string Meaning() const;
};

/// KV tokens that each engine of the demo gets: room for 1.15 times its fair share of the tenants'
/// static prefixes and for what its share of the clients run, so that placement decides whether
/// they fit.
uint32_t DemoKvTokens(const DemoOptions& options, uint32_t engines);

/// Runs it. kCancelled on Ctrl-C; other errors name the process that doesn't answer.
Result<DemoResult> RunDemo(const DemoOptions& options, ProgressLine& line);

}  // namespace hidane::cli
