#include "routing/engine_speed.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace hidane::routing {
namespace {

// 8 G parameters in 16 bits on one H100, by the simulator's step model (docs/simulator.md).
double TruePrefill(double n, double p) {
  return 0.015 + 2.73e-5 * n + 8.46e-10 * n * (p + n / 2);
}
double TrueStep(double k) {
  return 0.0072 + 4.4e-8 * k;
}

TEST(EngineSpeedTest, LearnsLinearPartAttentionAndOverheadApartUnderNoise) {
  EngineSpeed speed(10'000);
  Rng rng(1);
  for (int i = 0; i < 400; ++i) {
    const bool cold = rng.Below(10) == 0;
    const auto n = static_cast<uint32_t>(cold ? 28'000 : 500 + rng.Below(1'000));
    const uint32_t p = cold ? 0 : 27'000;
    speed.ObservePrefill(n, p, TruePrefill(n, p) * (0.8 + 0.4 * rng.Unit()));
  }
  for (const auto& [n, p] : {std::pair(28'000u, 0u), {1'000u, 27'000u}, {500u, 27'000u}}) {
    EXPECT_NEAR(speed.PrefillSeconds(n, p), TruePrefill(n, p), 0.12 * TruePrefill(n, p)) << n;
  }
  // Never seen: a conversation's long history, all of it cached.
  EXPECT_NEAR(speed.PrefillSeconds(1'000, 90'000), TruePrefill(1'000, 90'000), 0.07);
}

TEST(EngineSpeedTest, LearnsWhatResidentsCostADecodeStep) {
  EngineSpeed speed(10'000);
  Rng rng(1);
  for (int i = 0; i < 300; ++i) {
    const uint64_t k = rng.Below(400'000);
    speed.ObserveStep(k, TrueStep(static_cast<double>(k)) * (0.8 + 0.4 * rng.Unit()));
  }
  for (const uint64_t k : {30'000u, 200'000u, 400'000u}) {
    const double truth = TrueStep(static_cast<double>(k));
    EXPECT_NEAR(speed.StepSeconds(k), truth, 0.12 * truth) << k;
  }
}

// Two terms that explain the same answers: one that can fall no further must not hold the other up.
TEST(EngineSpeedTest, RecoversFromSlowStepsThoughItSeesOnlySmallContextsAfterwards) {
  EngineSpeed speed(10'000);
  Rng rng(1);
  for (int i = 0; i < 20; ++i) speed.ObserveStep(150'000 + rng.Below(100'000), 0.08);
  for (int i = 0; i < 100; ++i) {
    const uint64_t k = 27'000 * (1 + rng.Below(3));
    speed.ObserveStep(k, TrueStep(static_cast<double>(k)));
  }
  for (const uint64_t k : {27'000u, 81'000u, 170'000u}) {
    const double truth = TrueStep(static_cast<double>(k));
    EXPECT_NEAR(speed.StepSeconds(k), truth, 0.3 * truth) << k;
  }
}

TEST(EngineSpeedTest, AnOutlierMovesItLittleAndNonsenseNotAtAll) {
  EngineSpeed speed(10'000);
  for (int i = 0; i < 100; ++i) speed.ObservePrefill(4'000, 0, 2);
  const double before = speed.PrefillSeconds(4'000, 0);
  EXPECT_NEAR(before, 2, 0.05);
  speed.ObservePrefill(4'000, 0, 1'000);
  EXPECT_LT(speed.PrefillSeconds(4'000, 0), 1.15 * before);
  const double after = speed.PrefillSeconds(4'000, 0);
  speed.ObservePrefill(4'000, 0, -1);
  speed.ObservePrefill(4'000, 0, 0);
  EXPECT_EQ(speed.PrefillSeconds(4'000, 0), after);
}

TEST(EngineSpeedTest, IsAsFastAsItsPoolUntilEightSamples) {
  EngineSpeed pool(10'000);
  EngineSpeed worker(&pool);
  for (int i = 0; i < 50; ++i) pool.ObservePrefill(4'000, 0, 2);
  for (int i = 0; i < 7; ++i) worker.ObservePrefill(4'000, 0, 8);
  EXPECT_EQ(worker.PrefillSeconds(4'000, 0), pool.PrefillSeconds(4'000, 0));
  worker.ObservePrefill(4'000, 0, 8);
  EXPECT_GT(worker.PrefillSeconds(4'000, 0), 1.5 * pool.PrefillSeconds(4'000, 0));
}

// Hundreds of tokens a second or hundreds of thousands: a few dozen answers are enough.
TEST(EngineSpeedTest, FindsEnginesFarFromWhereItStarts) {
  for (const double tokens_per_s : {300.0, 300'000.0}) {
    EngineSpeed speed(10'000);
    for (uint32_t i = 0; i < 60; ++i) {
      const uint32_t n = 500 + 100 * (i % 40);
      speed.ObservePrefill(n, 0, n / tokens_per_s);
    }
    EXPECT_NEAR(speed.PrefillSeconds(2'000, 0), 2'000 / tokens_per_s, 0.15 * 2'000 / tokens_per_s);
  }
}

}  // namespace
}  // namespace hidane::routing
