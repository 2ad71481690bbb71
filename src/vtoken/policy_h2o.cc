#include "vtoken/policy_h2o.h"

#include <algorithm>

namespace hidane::vtoken {

PolicyTraits H2oPolicy::traits() const {
  return {.signals = {Signal::kColumnSum},
          .trigger = {.over = 16},
          .sinks = 0,
          .recent = 1,
          .recent_share = 0.5F};
}

void H2oPolicy::Score(const TokenView& view, std::span<float> score) {
  std::ranges::copy(view.column_sum, score.begin());
}

}  // namespace hidane::vtoken
