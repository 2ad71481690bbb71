#include "gateway/telemetry.h"

#include <charconv>
#include <cmath>

namespace hidane::gateway {
namespace {

struct Sample {
  std::string_view name, labels;
  double value = 0;
};

std::optional<double> Number(std::string_view text) {
  double v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end == text.data() || !std::isfinite(v) || v < 0) return std::nullopt;
  return v;
}

std::optional<Sample> ParseLine(std::string_view line) {
  if (line.empty() || line[0] == '#') return std::nullopt;
  Sample sample;
  const size_t name_end = line.find_first_of("{ ");
  if (name_end == std::string_view::npos) return std::nullopt;
  sample.name = line.substr(0, name_end);
  std::string_view rest = line.substr(name_end);
  if (rest[0] == '{') {
    const size_t close = rest.rfind('}');
    if (close == std::string_view::npos) return std::nullopt;
    sample.labels = rest.substr(1, close - 1);
    rest.remove_prefix(close + 1);
  }
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const auto value = Number(rest);
  if (!value) return std::nullopt;
  sample.value = *value;
  return sample;
}

/// The number in `key="..."`; labels of the info metric hold nothing that needs an escape.
std::optional<double> Label(std::string_view labels, std::string_view key) {
  for (size_t at = 0; (at = labels.find(key, at)) != std::string_view::npos; at += key.size()) {
    if (at > 0 && labels[at - 1] != ',' && labels[at - 1] != ' ') continue;
    std::string_view rest = labels.substr(at + key.size());
    if (rest.substr(0, 2) == "=\"") return Number(rest.substr(2));
  }
  return std::nullopt;
}

std::optional<uint64_t> Capacity(std::string_view labels) {
  constexpr double kTokensMax = 1e12;
  auto tokens = Label(labels, "kv_cache_size_tokens");
  if (!tokens) {
    const auto blocks = Label(labels, "num_gpu_blocks"), size = Label(labels, "block_size");
    if (blocks && size) tokens = *blocks * *size;
  }
  if (!tokens || *tokens < 1 || *tokens > kTokensMax) return std::nullopt;
  return static_cast<uint64_t>(*tokens);
}

template <class T>
void AddTo(std::optional<T>& sum, double value) {
  constexpr double kMax = 4e9;
  if constexpr (std::is_same_v<T, double>)
    sum = sum.value_or(0) + value;
  else
    sum = static_cast<T>(std::min(kMax, static_cast<double>(sum.value_or(0)) + value));
}

bool OneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  for (const auto n : names)
    if (n == name) return true;
  return false;
}

}  // namespace

EngineMetrics ReadEngineMetrics(std::string_view text) {
  EngineMetrics out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const auto sample = ParseLine(line);
    if (!sample) continue;
    const std::string_view name = sample->name;
    if (name == "vllm:cache_config_info") {
      if (const auto tokens = Capacity(sample->labels))
        out.kv_capacity_tokens = out.kv_capacity_tokens.value_or(0) + *tokens;
    } else if (OneOf(name, {"sglang:max_total_num_tokens", "sglang_max_total_num_tokens"})) {
      if (sample->value >= 1 && sample->value <= 1e12)
        out.kv_capacity_tokens = static_cast<uint64_t>(sample->value);
    } else if (OneOf(name, {"vllm:num_requests_running", "sglang:num_running_reqs",
                            "sglang_num_running_reqs", "llamacpp:requests_processing"})) {
      AddTo(out.running, sample->value);
    } else if (OneOf(name, {"vllm:num_requests_waiting", "sglang:num_queue_reqs",
                            "sglang_num_queue_reqs", "llamacpp:requests_deferred"})) {
      AddTo(out.waiting, sample->value);
    } else if (OneOf(name, {"vllm:prompt_tokens_total", "sglang:prompt_tokens_total",
                            "sglang_prompt_tokens_total", "llamacpp:prompt_tokens_total"})) {
      AddTo(out.prompt_tokens, sample->value);
    } else if (name == "process_start_time_seconds") {
      out.start_time_s = sample->value;
    }
  }
  return out;
}

bool Restarted(const EngineMetrics& before, const EngineMetrics& now) {
  if (before.start_time_s && now.start_time_s && *before.start_time_s != *now.start_time_s)
    return true;
  return before.prompt_tokens && now.prompt_tokens && *now.prompt_tokens < *before.prompt_tokens;
}

}  // namespace hidane::gateway
