#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "vtoken/policy.h"

namespace hidane::vtoken {

// Building blocks for Score. O(n) for n tokens unless said; no allocation.

/// Live tokens before the newest `rows` positions: those that a window's rows look back at.
inline size_t BeforeWindow(const TokenView& view, uint32_t rows) {
  const uint32_t from = view.logical_length - std::min(view.logical_length, rows);
  return static_cast<size_t>(std::ranges::lower_bound(view.positions, from) -
                             view.positions.begin());
}

/// out[i] = sum of `in` over the `width` tokens around i, cut at the ends, / width. REQUIRES: odd
/// width; out doesn't overlap in. O(n * width).
inline void MeanPool(std::span<const float> in, size_t width, std::span<float> out) {
  const size_t reach = width / 2;
  for (size_t i = 0; i < in.size(); ++i) {
    float sum = 0;
    for (size_t j = i - std::min(i, reach); j < std::min(in.size(), i + reach + 1); ++j)
      sum += in[j];
    out[i] = sum / static_cast<float>(width);
  }
}

/// out[i] = the largest of `in` over the `width` tokens around i. As MeanPool otherwise.
inline void MaxPool(std::span<const float> in, size_t width, std::span<float> out) {
  const size_t reach = width / 2;
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t first = i - std::min(i, reach), last = std::min(in.size(), i + reach + 1);
    out[i] = *std::max_element(in.begin() + static_cast<ptrdiff_t>(first),
                               in.begin() + static_cast<ptrdiff_t>(last));
  }
}

/// x = exp(x - max) / sum, in place. No-op when empty.
inline void Softmax(std::span<float> x) {
  if (x.empty()) return;
  const float top = *std::ranges::max_element(x);
  float sum = 0;
  for (float& v : x) sum += v = std::exp(v - top);
  for (float& v : x) v /= sum;
}

/// Inner product. Sums every eighth product by itself and then these, always in this order: fast
/// without leaving the order to the compiler. REQUIRES: equal sizes.
inline float Dot(std::span<const float> a, std::span<const float> b) {
  constexpr size_t kLanes = 8;
  std::array<float, kLanes> lanes{};
  size_t i = 0;
  for (; i + kLanes <= a.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  for (; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace hidane::vtoken
