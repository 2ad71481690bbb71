#pragma once
#include <cstdint>

#include "sim/engine.h"

namespace hidane::sim {

/// An engine whose times are easy to add up: 1 ms a prompt token and 10 ms a step that prefills;
/// 1 ms a decoding sequence and 5 ms a step that decodes. By default 100 KV blocks of 64 tokens.
inline EngineOptions RoundNumbers(uint64_t kv_tokens = 6'400) {
  EngineOptions options;
  options.gpu = {.name = "test",
                 .parameters = 5e8,
                 .layers = 0,
                 .weight_bytes = 0,
                 .kv_bytes_per_token = 0,
                 .kv_capacity_tokens = kv_tokens,
                 .flops = 1e12,
                 .prefill_overhead_s = 0.010,
                 .decode_overhead_s = 0.005,
                 .decode_sequence_s = 0.001};
  return options;
}

}  // namespace hidane::sim
