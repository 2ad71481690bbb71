#include "sim/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace hidane::sim {
namespace {

constexpr int kDraws = 100'000;

struct Moments {
  double mean = 0, cv = 0;
};

template <class F>
Moments MomentsOf(F draw) {
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = draw();
    sum += x;
    squares += x * x;
  }
  const double mean = sum / kDraws;
  return {mean, std::sqrt(squares / kDraws - mean * mean) / mean};
}

TEST(Random, WeightedDrawsEachIndexByItsShare) {
  const std::array<double, 4> weights = {1, 0, 2, 5};
  const Weighted w(weights);
  Rng rng(1);
  std::array<int, 4> seen{};
  for (int i = 0; i < kDraws; ++i) ++seen[w.Draw(rng)];
  EXPECT_EQ(seen[1], 0);
  for (const uint32_t i : {0u, 2u, 3u}) {
    EXPECT_DOUBLE_EQ(w.Share(i), weights[i] / 8);
    EXPECT_NEAR(seen[i], kDraws * w.Share(i), 0.01 * kDraws);
  }
}

TEST(Random, ZipfOneGivesTheFirstOf32AQuarter) {
  const Weighted zipf(ZipfWeights(32, 1));
  EXPECT_NEAR(zipf.Share(0), 0.2464, 1e-4);  // 1 / H(32)
  EXPECT_NEAR(zipf.Share(0) / zipf.Share(31), 32, 1e-9);
  EXPECT_NEAR(Weighted(ZipfWeights(8, 0)).Share(5), 0.125, 1e-12);
}

TEST(Random, QuantilesAreJoinedByStraightLines) {
  const std::array<Quantile, 3> points = {{{0, 10}, {0.5, 20}, {1, 120}}};
  EXPECT_DOUBLE_EQ(AtQuantile(points, 0), 10);
  EXPECT_DOUBLE_EQ(AtQuantile(points, 0.25), 15);
  EXPECT_DOUBLE_EQ(AtQuantile(points, 0.5), 20);
  EXPECT_DOUBLE_EQ(AtQuantile(points, 0.75), 70);
  EXPECT_DOUBLE_EQ(AtQuantile(points, 1), 120);
  EXPECT_DOUBLE_EQ(MeanOf(points), 0.5 * 15 + 0.5 * 70);
}

TEST(Random, GammaAndWeibullHaveTheirMoments) {
  Rng rng(3);
  const Moments wide = MomentsOf([&] { return DrawGamma(rng, 0.5, 4); });
  EXPECT_NEAR(wide.mean, 2, 0.05);
  EXPECT_NEAR(wide.cv, std::sqrt(2), 0.05);
  const Moments narrow = MomentsOf([&] { return DrawGamma(rng, 9, 2); });
  EXPECT_NEAR(narrow.mean, 18, 0.2);
  EXPECT_NEAR(narrow.cv, 1.0 / 3, 0.01);
  const Moments weibull = MomentsOf([&] { return DrawWeibull(rng, 2, 10); });
  EXPECT_NEAR(weibull.mean, 10 * std::tgamma(1.5), 0.1);
}

TEST(Random, LogNormalHasItsMedian) {
  Rng rng(4);
  int below = 0;
  for (int i = 0; i < kDraws; ++i) below += DrawLogNormal(rng, 120, 0.5) < 120;
  EXPECT_NEAR(below, kDraws / 2, 0.01 * kDraws);
}

TEST(Random, SameSeedSameDraws) {
  Rng a(7), b(7);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(DrawGamma(a, 1.5, 1), DrawGamma(b, 1.5, 1));
}

}  // namespace
}  // namespace hidane::sim
