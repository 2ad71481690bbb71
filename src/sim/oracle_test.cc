#include "sim/oracle.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/rng.h"
#include "routing/router.h"
#include "sim/engine_test_util.h"

namespace hidane::sim {
namespace {

/// A tenant's 640 static tokens, then `own` ones of this request alone.
Request Make(uint64_t id, uint64_t tenant, uint32_t own, uint32_t output) {
  Request request;
  request.id = id;
  request.output_tokens = output;
  request.prompt.chain = {Mix64(tenant), Mix64(1'000'000 + id)};
  request.prompt.ends = {640, 640 + own};
  request.prompt.tokens = 640 + own;
  request.prompt.k1_end = 1;
  return request;
}

Forecast Predict(const Engine& engine, const Request& request) {
  return engine.Predict(request.prompt, request.output_tokens);
}

TEST(ForecastTest, AnIdleEngineComputesWhatItHasNotCached) {
  Engine engine(RoundNumbers());
  const Forecast cold = Predict(engine, Make(2, 7, 60, 1));
  EXPECT_EQ(cold.cached_tokens, 0u);
  EXPECT_NEAR(cold.prefill, 0.710, 1e-9);
  EXPECT_EQ(cold.wait + cold.decode + cold.kv_wait, 0);
  engine.Submit(Make(1, 7, 60, 1));
  while (engine.BeginStep()) engine.EndStep();
  const Forecast warm = Predict(engine, Make(2, 7, 60, 1));
  EXPECT_EQ(warm.cached_tokens, 640u);
  EXPECT_NEAR(warm.prefill, 0.070, 1e-9);
}

TEST(ForecastTest, WhatIsQueuedIsWaitedForAndWhatItComputesIsCached) {
  Engine engine(RoundNumbers());
  engine.Submit(Make(1, 7, 60, 3));
  const Forecast same = Predict(engine, Make(2, 7, 60, 1));
  EXPECT_EQ(same.cached_tokens, 640u);
  EXPECT_NEAR(same.wait, 0.710, 1e-9);
  engine.BeginStep();
  engine.EndStep();
  const Forecast beside = Predict(engine, Make(2, 8, 60, 1));
  EXPECT_EQ(beside.wait, 0);
  EXPECT_NEAR(beside.decode, 0.006, 1e-9) << "one decode step beside its only chunk";
}

TEST(ForecastTest, FullMemoryIsWaitedFor) {
  Engine engine(RoundNumbers());
  engine.Submit(Make(1, 7, 5'000, 50));
  engine.BeginStep();
  engine.EndStep();
  EXPECT_EQ(Predict(engine, Make(2, 8, 60, 1)).kv_wait, 0);
  EXPECT_NEAR(Predict(engine, Make(2, 8, 600, 1)).kv_wait, 49 * 0.006, 1e-9);
}

TEST(OracleTest, TakesTheLeastWaitPlusTheWorkThatItCreates) {
  std::deque<Engine> engines;
  for (int i = 0; i < 3; ++i) engines.emplace_back(RoundNumbers());
  routing::Router router;
  for (uint32_t w = 0; w < 3; ++w) {
    router.PutWorker({.id = WorkerId(w), .name = std::to_string(w), .model = {}}, TimePoint{});
  }
  router.SetPolicy("oracle", [&engines](const routing::Params&) {
    return MakeOracle([&engines](WorkerId id) -> const Engine& { return engines[id.value()]; });
  });
  engines[1].Submit(Make(1, 7, 60, 1));
  while (engines[1].BeginStep()) engines[1].EndStep();
  const auto choose = [&router](const Request& request) {
    return router.Route({.identity = request.prompt}, TimePoint{})->worker.value();
  };
  EXPECT_EQ(choose(Make(2, 7, 60, 1)), 1u) << "where its prefix is";
  engines[1].Submit(Make(3, 9, 360, 1));
  EXPECT_EQ(choose(Make(4, 7, 60, 1)), 1u) << "1.01 s + 2 x 0.07 s against 2 x 0.71 s";
  engines[1].Submit(Make(5, 9, 360, 1));
  EXPECT_NE(choose(Make(6, 7, 60, 1)), 1u);
}

}  // namespace
}  // namespace hidane::sim
