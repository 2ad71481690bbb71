#include "vtoken/policy_random.h"

#include "base/rng.h"

namespace hidane::vtoken {

PolicyTraits RandomPolicy::traits() const {
  return {.scope = Scope::kSequence, .trigger = {.over = 64}, .origin = Origin::kPromptEnd};
}

void RandomPolicy::Score(const TokenView& view, std::span<float> score) {
  for (size_t i = 0; i < view.size(); ++i) {
    const uint64_t hash = Mix64(view.seed ^ Mix64(view.positions[i]));
    score[i] = static_cast<float>(hash >> 40) * 0x1p-24F;  // uniform in [0, 1)
  }
}

}  // namespace hidane::vtoken
