#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace hidane::gateway {

/// What the gateway wants to know of an engine's `/metrics`; absent values were not there.
struct EngineMetrics {
  std::optional<uint64_t> kv_capacity_tokens;
  std::optional<uint32_t> running;
  std::optional<uint32_t> waiting;
  std::optional<double> start_time_s;   ///< of the process, seconds since the epoch
  std::optional<double> prompt_tokens;  ///< a counter: going back means a restart
};

/// Reads Prometheus text as vLLM, SGLang and Hidane's engine write it. Never fails: lines that
/// make no sense, NaN and infinities are skipped. Samples of several labels are summed.
EngineMetrics ReadEngineMetrics(std::string_view text);

/// Whether `now` is another process than `before` was: a new start time, or a counter below what
/// it had been.
bool Restarted(const EngineMetrics& before, const EngineMetrics& now);

}  // namespace hidane::gateway
