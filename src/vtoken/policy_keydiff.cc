#include "vtoken/policy_keydiff.h"

#include "vtoken/score_ops.h"

namespace hidane::vtoken {

PolicyTraits KeyDiffPolicy::traits() const {
  return {.signals = {Signal::kKeyRows, Signal::kKeyNorm},
          .trigger = {.over = 128},
          .origin = Origin::kPromptEnd,
          .sinks = 0,
          .recent = 1};
}

void KeyDiffPolicy::Score(const TokenView& view, std::span<float> score) {
  anchor_.assign(view.head_dim, 0);
  for (size_t i = 0; i < view.size(); ++i) {
    const std::span<const float> key = view.key(i);
    const float scale = 1 / std::max(view.key_norm[i], 1e-8F);
    for (size_t d = 0; d < key.size(); ++d) anchor_[d] += key[d] * scale;
  }
  // The mean's length cancels in the cosine; the sum serves as well.
  const float length = std::max(std::sqrt(Dot(anchor_, anchor_)), 1e-8F);
  for (size_t i = 0; i < view.size(); ++i)
    score[i] = -Dot(view.key(i), anchor_) / (std::max(view.key_norm[i], 1e-8F) * length);
}

}  // namespace hidane::vtoken
