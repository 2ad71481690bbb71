#pragma once
#include <vector>

#include "vtoken/policy.h"

namespace hidane::vtoken {

/// Redundancy-aware: keeps what is looked at and hasn't been said again later. For long reasoning.
///
///   importance_i = max over 7 neighbors of (weight from the last 8 rows / 8)
///   redundancy   = softmax over i of (mean over the later tokens j of cos(k_i, k_j))
///   score        = 0.1 importance - 0.9 redundancy; the last 8 stay
///
/// Source: arXiv 2505.24133, Zefan-Cai/R-KV (window 8, kernel 7, lambda 0.1 in the paper).
/// Deviations: redundancy counts later tokens only, divided by the number of all, instead of all
/// similar ones (cosine > 0.5) but the latest: the same aim, that the latest of similar tokens
/// stays, in O(n) instead of O(n^2). The maximum over a KV head's query heads is taken after the
/// softmax and the sum over rows, not before. The prompt is compressed too.
class RKvPolicy final : public Policy {
 public:
  static constexpr uint32_t kWindow = 8, kKernel = 7;
  static constexpr float kLambda = 0.1F;
  std::string_view name() const override { return "r-kv"; }
  PolicyTraits traits() const override;
  void Score(const TokenView& view, std::span<float> score) override;

 private:
  std::vector<float> later_, redundancy_;  // [head_dim], [n], scratch
};

}  // namespace hidane::vtoken
