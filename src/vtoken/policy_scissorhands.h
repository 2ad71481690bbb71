#pragma once
#include "vtoken/policy.h"

namespace hidane::vtoken {

/// Persistence of importance: drops, many at a time, the tokens that were unimportant most often.
///
///   score = - rows in which the token's weight was below 1 / (tokens that the row saw)
///
/// Source: arXiv 2305.17118 (no official code).
/// Deviations: budgets are uniform; the paper gives later layers more. Counts run from the origin,
/// not over the last 400 rows. A batch is `over` tokens, 128 unless configured; the paper's is half
/// of the budget. One set per KV head, by the mean count over its query heads. The newest 10 stay.
class ScissorhandsPolicy final : public Policy {
 public:
  std::string_view name() const override { return "scissorhands"; }
  PolicyTraits traits() const override;
  void Score(const TokenView& view, std::span<float> score) override;
};

}  // namespace hidane::vtoken
