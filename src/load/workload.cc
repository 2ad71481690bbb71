#include "load/workload.h"

#include <algorithm>
#include <cmath>

#include "base/json_out.h"
#include "base/rng.h"

namespace hidane::load {
namespace {

constexpr double kTraceBlockTokens = 512;

/// Cumulative share of requests by tenant, tenant k having weight 1 / (k+1)^s.
std::vector<double> Popularity(uint32_t tenants, double s) {
  std::vector<double> sums(tenants);
  double sum = 0;
  for (uint32_t k = 0; k < tenants; ++k) sums[k] = sum += std::pow(k + 1.0, -s);
  for (double& x : sums) x /= sum;
  return sums;
}

}  // namespace

uint32_t OwnWords(uint32_t own_tokens) {
  return std::max<uint32_t>(1, own_tokens * 3 / 4);
}

std::vector<PlannedRequest> MakePlan(const WorkloadOptions& options) {
  const std::vector<double> popularity = Popularity(options.tenants, options.zipf_s);
  // Arrivals and draws have generators of their own, so that the same tenants come in the same
  // order whatever the rate is.
  Rng draws(options.seed), arrivals(Mix64(options.seed));
  std::vector<PlannedRequest> plan;
  plan.reserve(options.requests);
  double now_s = 0;
  for (uint32_t i = 0; i < options.requests; ++i) {
    if (options.rate > 0) now_s += arrivals.Exponential(1 / options.rate);
    const auto at = std::upper_bound(popularity.begin(), popularity.end() - 1, draws.Unit());
    plan.push_back({.at = FromSeconds(now_s),
                    .tenant = static_cast<uint32_t>(at - popularity.begin()),
                    .own_seed = draws.Next(),
                    .own_tokens = options.own_tokens,
                    .output_tokens = options.output_tokens});
  }
  return plan;
}

Workload::Workload(WorkloadOptions options, double bytes_per_token)
    : options_(std::move(options)), bytes_per_token_(bytes_per_token) {
  const auto bytes = static_cast<size_t>(options_.static_tokens * bytes_per_token_);
  for (uint32_t tenant = 0; tenant < options_.tenants; ++tenant) {
    prefixes_.push_back(
        MakeStaticPrefix(Mix64(options_.seed * 1'000'003 + tenant), std::max<size_t>(bytes, 1)));
  }
}

PlannedRequest Workload::Extra(uint32_t tenant, uint64_t nth) const {
  return {.tenant = tenant,
          .own_seed = Mix64(options_.seed ^ Mix64(nth + 1) ^ 0x9e37),
          .own_tokens = options_.own_tokens,
          .output_tokens = options_.output_tokens};
}

std::string Workload::Body(const PlannedRequest& request) const {
  JsonWriter w;
  w.BeginObject().Field("model", options_.model).Key("messages").BeginArray();
  std::string user;
  const bool has_tenant = request.tenant != kNoTenant;
  if (has_tenant) {
    w.BeginObject().Field("role", "system").Field("content", prefix(request.tenant).system);
    w.EndObject();
  } else {
    const auto words = static_cast<size_t>(kTraceBlockTokens * 3 / 4);
    for (const uint64_t block : request.blocks) user += MakeWords(Mix64(block), words) + "\n";
  }
  user += MakeWords(request.own_seed, OwnWords(request.own_tokens)) + "?";
  w.BeginObject().Field("role", "user").Field("content", user).EndObject().EndArray();
  if (has_tenant && !prefix(request.tenant).tools_json.empty()) {
    w.Key("tools").Raw(prefix(request.tenant).tools_json);
  }
  w.Field("max_tokens", request.output_tokens).Field("temperature", 0).Field("stream", true);
  w.Key("stream_options").BeginObject().Field("include_usage", true).EndObject();
  if (options_.ignore_eos) w.Field("ignore_eos", true);
  w.EndObject();
  return w.Take();
}

}  // namespace hidane::load
