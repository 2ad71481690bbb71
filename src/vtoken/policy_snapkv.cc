#include "vtoken/policy_snapkv.h"

#include "vtoken/score_ops.h"

namespace hidane::vtoken {

PolicyTraits SnapKvPolicy::traits() const {
  return {.signals = {Signal::kWindowSum},
          .origin = Origin::kWindow,
          .window_rows = kWindow,
          .sinks = 0,
          .recent = kWindow};
}

// The window's own tokens stay, so their weights must not leak into their neighbors' means.
void SnapKvPolicy::Score(const TokenView& view, std::span<float> score) {
  const size_t n = BeforeWindow(view, kWindow);
  MeanPool(view.window_sum.first(n), kKernel, score.first(n));
  std::ranges::fill(score.subspan(n), 0.0F);
}

}  // namespace hidane::vtoken
