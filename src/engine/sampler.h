#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/rng.h"
#include "engine/engine.h"

namespace hidane::engine {

/// The id of the highest logit, the lowest id on a tie. NaN never wins; nullopt when the highest is
/// no finite number, so that there is no token to give. O(vocab).
std::optional<TokenId> Argmax(std::span<const float> logits);

/// Turns a row of logits, f32 [vocab], into a token. Keeps scratch memory; one thread.
class Sampler {
 public:
  /// Greedy at temperature 0. Else draws once from `rng` out of softmax(logits / temperature) cut
  /// to the top_k highest, then to the smallest set of the highest whose share reaches top_p. A
  /// token depends on its own row, params and rng alone. nullopt: as Argmax.
  std::optional<TokenId> Sample(std::span<const float> logits, const SamplingParams& params,
                                Rng& rng);

 private:
  struct Candidate {
    TokenId id;
    float logit;
    float weight;  // exp((logit - max) / temperature)
  };
  // The `n` highest of candidates_ come first, in order.
  void SortTop(size_t n);
  void CutToTopP(float top_p);
  double TotalWeight() const;

  std::vector<Candidate> candidates_;
};

/// Log-probabilities under softmax(logits): `chosen` first, then the n highest, highest first.
/// REQUIRES: at least one finite logit.
std::vector<TokenLogprob> TopLogprobs(std::span<const float> logits, TokenId chosen, uint32_t n);

}  // namespace hidane::engine
