#pragma once
#include <cstdint>

#include "base/result.h"
#include "engine/engine.h"
#include "model/model.h"

namespace hidane::engine {

inline constexpr uint32_t kLogprobsMax = 20;

/// What a request has to fit.
struct RequestLimits {
  uint32_t vocab_size, context_length;
  uint64_t kv_slots;
  uint32_t choices_max;
  KvPolicy kv_policy = {};  ///< of a request that names none
};

/// kInvalidArgument with `param` naming the field that is out of range, or "max_tokens" when prompt
/// and max_tokens together don't fit.
Status CheckRequest(const Request& request, const RequestLimits& limits);

/// The most that max_tokens may be by context and KV memory, under a policy by what it lets stay;
/// 0: the prompt doesn't fit. O(log context) times SlotsNeeded.
uint32_t MaxTokensThatFit(uint64_t prompt_tokens, const KvPolicy& policy,
                          const RequestLimits& limits);

}  // namespace hidane::engine
