#pragma once
#include <cstdint>

#include "routing/regression.h"

namespace hidane::routing {

/// How fast one engine is, learned from its answers:
///
///     prefill(n, p) = a + b n + c n (p + n / 2)    n new tokens behind p cached ones
///     step(k)       = d + e k                      one decode step, k tokens of context in all
///
/// b is the linear part, c attention, a and d what each costs however small it is, e the reading
/// of KV. Not thread-safe.
class EngineSpeed {
 public:
  explicit EngineSpeed(double prefill_tokens_per_s);
  /// Starts from `prior` and counts as its equal until kSamplesMin samples are in, so that
  /// being measured first is neither an advantage nor a burden. REQUIRES: prior outlives it.
  explicit EngineSpeed(const EngineSpeed* prior);

  double PrefillSeconds(uint32_t new_tokens, uint32_t cached_tokens) const;
  double StepSeconds(uint64_t context_tokens) const;
  double tokens_per_s() const;  ///< of a cold prompt of kTypicalTokens

  /// A prefill took `seconds` beyond the predicted wait. Non-positive times teach nothing.
  void ObservePrefill(uint32_t new_tokens, uint32_t cached_tokens, double seconds);
  void ObserveStep(uint64_t context_tokens, double seconds);

 private:
  static constexpr uint32_t kSamplesMin = 8;
  static constexpr uint32_t kTypicalTokens = 8'192;
  static Regression<3>::Vector PrefillTerms(uint32_t new_tokens, uint32_t cached_tokens);
  static Regression<2>::Vector StepTerms(uint64_t context_tokens);

  const EngineSpeed* prior_ = nullptr;
  Regression<3> prefill_;
  Regression<2> step_;
  uint32_t prefills_ = 0;
  uint32_t steps_ = 0;
};

}  // namespace hidane::routing
