#include "vtoken/policy_tova.h"

#include <algorithm>

namespace hidane::vtoken {

PolicyTraits TovaPolicy::traits() const {
  return {.signals = {Signal::kLastRow},
          .scope = Scope::kLayer,
          .trigger = {.over = 16},
          .origin = Origin::kWindow,
          .window_rows = 1,
          .sinks = 0,
          .recent = 1};
}

void TovaPolicy::Score(const TokenView& view, std::span<float> score) {
  std::ranges::copy(view.last_row, score.begin());
}

}  // namespace hidane::vtoken
