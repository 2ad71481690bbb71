#pragma once
#include <vector>

#include "vtoken/policy.h"

namespace hidane::vtoken {

/// Keeps the keys that differ most from the average one. Needs no attention at all.
///
///   score_i = - cos(k_i, mean over j of k_j / |k_j|)
///
/// Source: arXiv 2504.15364; anchor as in NVIDIA/kvpress (mean of the normalized keys).
/// Deviations: runs when the trigger says, not after each block of a prefill. Keys are taken as the
/// cache holds them, RoPE applied. Decoding evicts in batches of 128 unless configured.
class KeyDiffPolicy final : public Policy {
 public:
  std::string_view name() const override { return "keydiff"; }
  PolicyTraits traits() const override;
  void Score(const TokenView& view, std::span<float> score) override;

 private:
  std::vector<float> anchor_;  // [head_dim], scratch
};

}  // namespace hidane::vtoken
