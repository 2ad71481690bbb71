#include "engine/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace hidane::engine {
namespace {

constexpr size_t kLanes = 16;

// The comparison that a vector max instruction makes: NaN never wins.
float Max(std::span<const float> x) {
  std::array<float, kLanes> lanes;
  lanes.fill(-std::numeric_limits<float>::infinity());
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
  }
  for (; i < x.size(); ++i) lanes[0] = x[i] > lanes[0] ? x[i] : lanes[0];
  return *std::max_element(lanes.begin(), lanes.end());
}

bool Higher(float logit_a, TokenId a, float logit_b, TokenId b) {
  return logit_a != logit_b ? logit_a > logit_b : a < b;
}

double LogSumExp(std::span<const float> logits, float max) {
  double sum = 0;
  for (const float logit : logits) {
    if (logit <= max) sum += std::exp(logit - max);  // false for NaN
  }
  return max + std::log(sum);
}

}  // namespace

std::optional<TokenId> Argmax(std::span<const float> logits) {
  const float max = Max(logits);
  if (!std::isfinite(max)) return std::nullopt;
  return static_cast<TokenId>(std::find(logits.begin(), logits.end(), max) - logits.begin());
}

std::optional<TokenId> Sampler::Sample(std::span<const float> logits, const SamplingParams& params,
                                       Rng& rng) {
  const auto best = Argmax(logits);
  if (!best || params.temperature == 0) return best;
  const float max = logits[static_cast<size_t>(*best)];

  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] <= max) candidates_.push_back({static_cast<TokenId>(i), logits[i], 0});
  }
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < candidates_.size()) {
    SortTop(static_cast<size_t>(params.top_k));
    candidates_.resize(static_cast<size_t>(params.top_k));
  }
  for (Candidate& c : candidates_) c.weight = std::exp((c.logit - max) / params.temperature);
  if (params.top_p < 1) CutToTopP(params.top_p);

  double left = rng.Unit() * TotalWeight();
  for (const Candidate& c : candidates_) {
    left -= c.weight;
    if (left < 0) return c.id;
  }
  return best;  // rounding left a crumb of `left`
}

double Sampler::TotalWeight() const {
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  return total;
}

void Sampler::SortTop(size_t n) {
  std::partial_sort(
      candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(n), candidates_.end(),
      [](const Candidate& a, const Candidate& b) { return Higher(a.logit, a.id, b.logit, b.id); });
}

// The nucleus is small as a rule, so ever larger heads are sorted rather than the vocabulary.
void Sampler::CutToTopP(float top_p) {
  const double wanted = top_p * TotalWeight();
  for (size_t n = 64;; n *= 8) {
    n = std::min(n, candidates_.size());
    SortTop(n);
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
      sum += candidates_[i].weight;
      if (sum >= wanted) return candidates_.resize(i + 1);
    }
    if (n == candidates_.size()) return;
  }
}

std::vector<TokenLogprob> TopLogprobs(std::span<const float> logits, TokenId chosen, uint32_t n) {
  const double lse = LogSumExp(logits, Max(logits));
  const auto logprob = [&](TokenId id) {
    return TokenLogprob{id, static_cast<float>(logits[static_cast<size_t>(id)] - lse)};
  };
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::erase_if(ids, [&](TokenId id) { return std::isnan(logits[static_cast<size_t>(id)]); });
  const auto count = std::min<size_t>(n, ids.size());
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end(),
                    [&](TokenId a, TokenId b) {
                      return Higher(logits[static_cast<size_t>(a)], a,
                                    logits[static_cast<size_t>(b)], b);
                    });
  std::vector<TokenLogprob> top = {logprob(chosen)};
  for (size_t i = 0; i < count; ++i) top.push_back(logprob(ids[i]));
  return top;
}

}  // namespace hidane::engine
