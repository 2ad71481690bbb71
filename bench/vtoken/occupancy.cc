#include "occupancy.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.h"

namespace hidane::bench {
namespace {

double HotShare(double keep) {
  return std::clamp((keep - kCold) / (kHot - kCold), 0.0, 1.0);
}

/// Probability of `k` of `n` with `p` each. REQUIRES: 0 < p < 1.
double Binomial(uint32_t n, uint32_t k, double p) {
  return std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0) +
                  k * std::log(p) + (n - k) * std::log1p(-p));
}

/// Marks `count` of [first, first + n), drawn without replacement.
void MarkSome(std::vector<uint8_t>& map, size_t first, size_t n, size_t count, Rng& rng) {
  for (size_t i = 0; i < n && count > 0; ++i)
    if (rng.Below(n - i) < count) map[first + i] = 1, --count;
}

void Clustered(std::vector<uint8_t>& map, double keep, Rng& rng) {
  const double live_run = kDeadRun * keep / (1 - keep);
  bool live = rng.Unit() < keep;
  for (uint8_t& token : map) {
    token = live;
    if (rng.Unit() < 1 / (live ? live_run : kDeadRun)) live = !live;
  }
}

void Bimodal(std::vector<uint8_t>& map, double keep, Rng& rng) {
  const size_t stretches = map.size() / kStretch;
  std::vector<uint8_t> hot(stretches);
  const double wanted = HotShare(keep) * static_cast<double>(stretches);
  MarkSome(hot, 0, stretches, static_cast<size_t>(std::lround(wanted)), rng);
  for (size_t s = 0; s < stretches; ++s)
    for (size_t i = 0; i < kStretch; ++i)
      map[s * kStretch + i] = rng.Unit() < (hot[s] ? kHot : kCold);
}

}  // namespace

std::string_view NameOf(Shape shape) {
  constexpr std::array<std::string_view, 4> kNames{"iid", "clustered", "bimodal", "strided"};
  return kNames[static_cast<size_t>(shape)];
}

std::vector<uint8_t> MakeLiveMap(Shape shape, uint32_t tokens, double keep, uint64_t seed) {
  std::vector<uint8_t> map(tokens);
  Rng rng(seed);
  if (shape == Shape::kIid)
    MarkSome(map, 0, tokens, static_cast<size_t>(std::lround(keep * tokens)), rng);
  if (shape == Shape::kClustered) Clustered(map, keep, rng);
  if (shape == Shape::kBimodal) Bimodal(map, keep, rng);
  if (shape == Shape::kStrided)
    for (uint32_t i = 0; i < tokens; ++i)
      map[i] = std::floor((i + 1) * keep) > std::floor(i * keep);
  return map;
}

double NaiveShare(Shape shape, double keep, uint32_t block_size) {
  const auto some_live = [&](double p) { return 1 - std::pow(1 - p, block_size); };
  switch (shape) {
    case Shape::kIid:
      return some_live(keep);
    case Shape::kClustered:
      return 1 - (1 - keep) * std::pow(1 - 1 / kDeadRun, block_size - 1);
    case Shape::kBimodal: {
      const double hot = HotShare(keep);
      return hot * some_live(kHot) + (1 - hot) * some_live(kCold);
    }
    case Shape::kStrided:
      return 1;
  }
  return 1;
}

double Reduction(Shape shape, double keep, uint32_t block_size) {
  return 1 - keep / NaiveShare(shape, keep, block_size);
}

double ExpectedMoves(Shape shape, double keep, uint32_t block_size, uint32_t tokens) {
  const double blocks = static_cast<double>(tokens) / block_size;
  if (shape == Shape::kClustered) return -1;
  if (shape == Shape::kStrided) return tokens * keep * (1 - keep);
  const double hot = shape == Shape::kBimodal ? HotShare(keep) : 0;
  double room = keep, held = 0;  // shares of the blocks; tokens per block
  for (uint32_t o = block_size; o > 0 && room > 0; --o) {
    const double share = shape == Shape::kIid ? Binomial(block_size, o, keep)
                                              : hot * Binomial(block_size, o, kHot) +
                                                    (1 - hot) * Binomial(block_size, o, kCold);
    held += std::min(room, share) * o;
    room -= share;
  }
  return tokens * keep - blocks * held;
}

}  // namespace hidane::bench
