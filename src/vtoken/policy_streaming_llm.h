#pragma once
#include "vtoken/policy.h"

namespace hidane::vtoken {

/// Keeps the first tokens (attention sinks) and the newest: a sliding window that doesn't collapse.
///
///   score = position; 4 sinks
///
/// Source: arXiv 2309.17453, mit-han-lab/streaming-llm (start_size 4).
/// Deviation: positions are kept, as everywhere in Hidane. The paper caches K before RoPE and
/// numbers the tokens by their place in the cache, so ours doesn't reach beyond the trained
/// context.
class StreamingLlmPolicy final : public Policy {
 public:
  std::string_view name() const override { return "streaming-llm"; }
  PolicyTraits traits() const override;
  void Score(const TokenView& view, std::span<float> score) override;
};

}  // namespace hidane::vtoken
