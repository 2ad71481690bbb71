#include "vtoken/policy_scissorhands.h"

#include <algorithm>
#include <functional>

namespace hidane::vtoken {

PolicyTraits ScissorhandsPolicy::traits() const {
  return {.signals = {Signal::kLowCount}, .trigger = {.over = 128}, .sinks = 0, .recent = 10};
}

void ScissorhandsPolicy::Score(const TokenView& view, std::span<float> score) {
  std::ranges::transform(view.low_count, score.begin(), std::negate{});
}

}  // namespace hidane::vtoken
