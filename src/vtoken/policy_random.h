#pragma once
#include "vtoken/policy.h"

namespace hidane::vtoken {

/// Keeps a uniformly random set: the baseline that a policy has to beat.
///
///   score = hash(seed, position), drawn anew at each run
///
/// Source: none. 2609.03430 (arXiv) shows how strong a baseline it is for reasoning.
/// Choice: 4 sinks stay, as in AnswerDotAI/cold-compress; all layers and heads lose the same
/// tokens.
class RandomPolicy final : public Policy {
 public:
  std::string_view name() const override { return "random"; }
  PolicyTraits traits() const override;
  void Score(const TokenView& view, std::span<float> score) override;
};

}  // namespace hidane::vtoken
