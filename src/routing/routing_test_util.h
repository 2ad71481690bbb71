#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/rng.h"
#include "prompt/identity.h"
#include "routing/router.h"

namespace hidane::routing {

/// A prompt made of parts as a simulator makes it: one block per kTestBlockTokens tokens, a byte
/// a token. Equal seeds in equal places share their blocks.
struct TestPart {
  uint64_t seed;
  uint32_t tokens;
};
inline constexpr uint32_t kTestBlockTokens = 64;

inline prompt::Identity MakePrompt(const std::vector<TestPart>& parts, const char* model = "m") {
  prompt::Identity id;
  id.model = model;
  id.root = 1;
  for (size_t p = 0; p < parts.size(); ++p) {
    for (uint32_t at = 0; at < parts[p].tokens; at += kTestBlockTokens) {
      const uint32_t end = id.bytes() + std::min(kTestBlockTokens, parts[p].tokens - at);
      id.chain.push_back(Mix64(id.HashAt(id.size()) ^ Mix64(parts[p].seed + at)));
      id.ends.push_back(end);
    }
    if (p == 0) id.k1_end = static_cast<uint32_t>(id.size());
    if (p == 1) id.k2_end = static_cast<uint32_t>(id.size());
  }
  id.k2_end = std::max(id.k2_end, id.k1_end);
  id.tokens = id.bytes();
  return id;
}

/// A tenant's request: its static prefix, then something of its own.
inline prompt::Identity TenantPrompt(uint64_t tenant, uint32_t static_tokens, uint64_t own,
                                     uint32_t own_tokens) {
  return MakePrompt({{1'000'000 * tenant, static_tokens}, {own, own_tokens}});
}

inline WorkerSpec TestWorker(uint32_t id, uint64_t capacity_tokens,
                             double prefill_tokens_per_s = 10'000) {
  return {.id = WorkerId(id),
          .name = "10.0.0." + std::to_string(id) + ":8000",
          .model = {},
          .kv_capacity_tokens = capacity_tokens,
          .prefill_tokens_per_s = prefill_tokens_per_s};
}

/// By which deltas name TestWorker(id).
inline uint64_t TestWorkerKey(WorkerId id) {
  return Xxh3(TestWorker(id.value(), 0).name);
}

inline TimePoint At(double seconds) {
  return FromSeconds(seconds);
}

}  // namespace hidane::routing
