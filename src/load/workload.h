#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "load/tool_schema.h"

namespace hidane::load {

/// Many agents that share a cluster: each sends its own static prefix and a short text of its own.
struct WorkloadOptions {
  uint32_t tenants = 8;           ///< >= 1
  uint32_t static_tokens = 3000;  ///< per tenant: tools and system message; >= 1
  uint32_t own_tokens = 100;      ///< at most, per request; >= 1
  uint32_t output_tokens = 24;    ///< max_tokens of a request; >= 1
  uint32_t requests = 200;        ///< >= 1
  double zipf_s = 0;              ///< popularity of tenants: 0 = uniform, 1 = Zipf's law
  double rate = 0;                ///< Poisson arrivals a second; 0 = closed loop
  uint64_t seed = 1;
  std::string model = {};   ///< `model` of the bodies
  bool ignore_eos = false;  ///< ask for exactly output_tokens; not in OpenAI's own API
};

/// The tenant of requests that come from a trace: no static prefix, only blocks.
inline constexpr uint32_t kNoTenant = UINT32_MAX;

/// One request of the plan.
struct PlannedRequest {
  Duration at{0};  ///< intended send time since the start; 0 in closed loop
  uint32_t tenant = 0;
  uint64_t own_seed = 0;  ///< the user's own text
  uint32_t own_tokens = 0;
  uint32_t output_tokens = 0;
  std::vector<uint64_t> blocks = {};  ///< trace replay: the prompt's 512-token blocks, in order
};

/// Which requests are sent when. Pure: the same options give the same plan.
std::vector<PlannedRequest> MakePlan(const WorkloadOptions& options);

/// Reads a Mooncake trace (JSON lines of timestamp in ms, input_length, output_length, hash_ids of
/// 512-token blocks) as a plan of at most `requests` requests; each block is a text of its own, so
/// that equal ids share a prefix. kInvalidArgument names the line.
/// Source: Mooncake (FAST'25), open trace format.
Result<std::vector<PlannedRequest>> ParseTrace(std::string_view jsonl, uint32_t requests);

/// Turns planned requests into bodies for POST /v1/chat/completions. Immutable.
class Workload {
 public:
  /// `bytes_per_token` sizes all text; a first guess until calibrated.
  Workload(WorkloadOptions options, double bytes_per_token);

  /// The body: stream on, usage asked for, temperature 0.
  std::string Body(const PlannedRequest& request) const;
  /// A request of this tenant outside the plan, for calibration and warm-up.
  PlannedRequest Extra(uint32_t tenant, uint64_t nth) const;
  const WorkloadOptions& options() const { return options_; }
  const StaticPrefix& prefix(uint32_t tenant) const { return prefixes_[tenant]; }
  double bytes_per_token() const { return bytes_per_token_; }

 private:
  WorkloadOptions options_;
  double bytes_per_token_;
  std::vector<StaticPrefix> prefixes_;  // [tenants]
};

/// How many words a user's text of at most `own_tokens` has: a word of MakeWords is one token in
/// the usual vocabularies, and a quarter is left for those that take two.
uint32_t OwnWords(uint32_t own_tokens);

}  // namespace hidane::load
