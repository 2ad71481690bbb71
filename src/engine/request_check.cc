#include "engine/request_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/kv_policy.h"

namespace hidane::engine {
namespace {

template <class... Args>
Status Bad(const char* param, fmt::format_string<Args...> text, Args&&... args) {
  return Fail(Code::kInvalidArgument, fmt::format(text, std::forward<Args>(args)...), param);
}

Status CheckSampling(const SamplingParams& p) {
  if (!std::isfinite(p.temperature) || p.temperature < 0) {
    return Bad("temperature", "temperature {} is not a number >= 0", p.temperature);
  }
  if (!(p.top_p > 0 && p.top_p <= 1)) return Bad("top_p", "top_p {} is not in (0, 1]", p.top_p);
  if (p.top_k < 0) return Bad("top_k", "top_k {} is negative", p.top_k);
  return {};
}

}  // namespace

Status CheckRequest(const Request& request, const RequestLimits& limits) {
  HIDANE_CHECK_OK(CheckSampling(request.sampling));
  if (request.prompt.empty()) return Bad("prompt", "the prompt is empty");
  if (request.max_tokens == 0) return Bad("max_tokens", "max_tokens 0 is not >= 1");
  if (request.logprobs > kLogprobsMax) {
    return Bad("logprobs", "logprobs {} is over {}", request.logprobs, kLogprobsMax);
  }
  if (request.choices == 0 || request.choices > limits.choices_max) {
    return Bad("n", "n {} is not in 1..{}, the sequences that run at once", request.choices,
               limits.choices_max);
  }
  const auto known = [&](TokenId id) {
    return id >= 0 && static_cast<uint32_t>(id) < limits.vocab_size;
  };
  const auto bad = std::find_if_not(request.prompt.begin(), request.prompt.end(), known);
  if (bad != request.prompt.end()) {
    return Bad("prompt", "token {} is not in the vocabulary of {}", *bad, limits.vocab_size);
  }
  const uint64_t tokens = uint64_t{request.prompt.size()} + request.max_tokens;
  if (tokens > limits.context_length) {
    return Bad("max_tokens", "{} prompt tokens and max_tokens {} exceed the context of {}",
               request.prompt.size(), request.max_tokens, limits.context_length);
  }
  const KvPolicy& policy = request.kv_policy ? *request.kv_policy : limits.kv_policy;
  HIDANE_CHECK_OK(CheckKvPolicy(policy, request.prompt.size()));
  const auto prompt_tokens = static_cast<uint32_t>(request.prompt.size());
  if (SlotsNeeded(policy, prompt_tokens, request.max_tokens) > limits.kv_slots) {
    return Bad("max_tokens", "{} prompt tokens and max_tokens {} exceed the KV memory of {} tokens",
               request.prompt.size(), request.max_tokens, limits.kv_slots);
  }
  return {};
}

uint32_t MaxTokensThatFit(uint64_t prompt_tokens, const KvPolicy& policy,
                          const RequestLimits& limits) {
  if (prompt_tokens == 0 || prompt_tokens >= limits.context_length ||
      !CheckKvPolicy(policy, prompt_tokens)) {
    return 0;
  }
  const auto prompt = static_cast<uint32_t>(prompt_tokens);
  const auto fits = [&](uint32_t n) { return SlotsNeeded(policy, prompt, n) <= limits.kv_slots; };
  uint32_t fit = 0, most = limits.context_length - prompt;
  while (fit < most) {
    const uint32_t middle = most - (most - fit) / 2;
    if (fits(middle)) {
      fit = middle;
    } else {
      most = middle - 1;
    }
  }
  return fit;
}

}  // namespace hidane::engine
