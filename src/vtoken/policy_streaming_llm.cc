#include "vtoken/policy_streaming_llm.h"

namespace hidane::vtoken {

PolicyTraits StreamingLlmPolicy::traits() const {
  return {.scope = Scope::kSequence, .trigger = {.over = 1}, .origin = Origin::kPromptEnd};
}

// Positions near each other round to one score; among equals the newest stays, so the order holds.
void StreamingLlmPolicy::Score(const TokenView& view, std::span<float> score) {
  for (size_t i = 0; i < view.size(); ++i) score[i] = static_cast<float>(view.positions[i]);
}

}  // namespace hidane::vtoken
