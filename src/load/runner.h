#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "load/answer.h"
#include "load/workload.h"

namespace hidane::load {

/// Where requests go.
struct Target {
  std::string url;                               ///< http://host:port, with or without /v1
  std::string api_key = {};                      ///< sent as `Authorization: Bearer`; empty = none
  Duration timeout = std::chrono::seconds(120);  ///< of one request, to its end
};

/// How far a run is, for a progress line.
struct Progress {
  uint32_t total = 0, sent = 0, done = 0, errors = 0;
  uint64_t prompt_tokens = 0, cached_tokens = 0;
  double elapsed_s = 0;
};

struct RunOptions {
  uint32_t concurrency = 0;       ///< closed loop with as many clients; 0 = open loop by plan times
  uint32_t in_flight_max = 4096;  ///< open loop: more than that end as kNotSent
  /// Called a few times a second from the thread that called Run; false ends the run early.
  std::function<bool(const Progress&)> on_progress = {};
};

/// Sends the plan and returns what became of each request, in plan order; requests that an early
/// end kept from being sent are left out. One event loop on the calling thread; returns when all
/// ended. kInvalidArgument for a URL that can't be parsed.
Result<std::vector<Outcome>> Run(const Target& target, const Workload& workload,
                                 std::span<const PlannedRequest> plan, const RunOptions& options);

struct HttpAnswer {
  int status = 0;
  std::string body;
};
/// One plain request, waited for: `path` as "/metrics". kUnavailable, naming the URL, when there is
/// no answer. At most 16 MiB.
Result<HttpAnswer> Call(const Target& target, std::string_view method, std::string_view path,
                        std::string_view body = {});

}  // namespace hidane::load
