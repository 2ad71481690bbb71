#pragma once
#include "vtoken/policy.h"

namespace hidane::vtoken {

/// Heavy-hitter oracle: keeps the tokens that attention has weighed most, and the newest.
///
///   score = sum over rows of the token's softmax weight; half of what stays is recent
///
/// Source: arXiv 2306.14048, FMInference/H2O (heavy_ratio 0.1 and recent_ratio 0.1 of the prompt).
/// Deviations: one set per KV head, scored by the mean over its query heads (the paper's models
/// have as many KV heads as query heads). Rows count from the origin, not from the first token, so
/// that a warm prefix cache gives the same victims. Among equal scores the newest stays. Decoding
/// evicts 16 tokens at a time unless configured; the paper's evicts one, and pays for scoring in
/// each step.
class H2oPolicy final : public Policy {
 public:
  std::string_view name() const override { return "h2o"; }
  PolicyTraits traits() const override;
  void Score(const TokenView& view, std::span<float> score) override;
};

}  // namespace hidane::vtoken
