#pragma once
#include "vtoken/policy.h"

namespace hidane::vtoken {

/// Token omission via attention: drops the token that the newest query weighs least.
///
///   score = the token's weight in the newest row, mean over all query heads of the layer
///
/// Source: arXiv 2401.06104, schwartz-lab-NLP/TOVA.
/// Deviations: the newest token always stays. Decoding evicts 16 tokens at a time unless
/// configured; the paper's evicts one. After the prompt all surplus tokens go at once by the
/// weights of its last row, as in the official code.
class TovaPolicy final : public Policy {
 public:
  std::string_view name() const override { return "tova"; }
  PolicyTraits traits() const override;
  void Score(const TokenView& view, std::span<float> score) override;
};

}  // namespace hidane::vtoken
