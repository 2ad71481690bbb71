#include "vtoken/policy_rkv.h"

#include "vtoken/score_ops.h"

namespace hidane::vtoken {

PolicyTraits RKvPolicy::traits() const {
  return {.signals = {Signal::kWindowSum, Signal::kKeyRows, Signal::kKeyNorm},
          .reduce = Reduce::kMax,
          .trigger = {.over = 128},
          .origin = Origin::kWindow,
          .window_rows = kWindow,
          .sinks = 0,
          .recent = kWindow};
}

void RKvPolicy::Score(const TokenView& view, std::span<float> score) {
  const size_t n = view.size(), before = BeforeWindow(view, kWindow);
  later_.assign(view.head_dim, 0);
  redundancy_.resize(n);
  for (size_t i = n; i-- > 0;) {  // later_ = sum of the normalized keys after i
    const std::span<const float> key = view.key(i);
    const float scale = 1 / std::max(view.key_norm[i], 1e-8F);
    redundancy_[i] = Dot(key, later_) * scale / static_cast<float>(n);
    for (size_t d = 0; d < key.size(); ++d) later_[d] += key[d] * scale;
  }
  Softmax(redundancy_);
  MaxPool(view.window_sum.first(before), kKernel, score.first(before));
  std::ranges::fill(score.subspan(before), 0.0F);
  for (size_t i = 0; i < n; ++i)
    score[i] = kLambda * score[i] / kWindow - (1 - kLambda) * redundancy_[i];
}

}  // namespace hidane::vtoken
