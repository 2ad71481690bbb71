#include "sim/scenario_demo.h"

#include <gtest/gtest.h>

#include "base/json_out.h"

namespace hidane::sim {
namespace {

Row Simulated(const std::string& policy, const CpuRates& rates = {}) {
  DemoRun run;
  run.policy = policy;
  run.rates = rates;
  const auto setup = DemoSetup(run);
  EXPECT_TRUE(setup);
  const auto result = SimulateDemo(run, *setup);
  EXPECT_TRUE(result);
  return result->row;
}

TEST(ScenarioDemoTest, ShowsTheTrapAndItsCure) {
  const Row trap = Simulated("round_robin"), cure = Simulated("prefix");
  EXPECT_EQ(trap.requests, 187);
  EXPECT_EQ(trap.errors + cure.errors, 0);
  EXPECT_NEAR(trap.hit_ratio, 0.32, 0.05);  // five of sixteen agents fit an engine
  EXPECT_NEAR(cure.hit_ratio, 0.95, 0.01);
  EXPECT_LT(cure.ttft_p50_s * 5, trap.ttft_p50_s);
}

TEST(ScenarioDemoTest, TheSameSeedGivesTheSameRow) {
  JsonWriter first, second;
  AppendJson(Simulated("prefix"), first, false);
  AppendJson(Simulated("prefix"), second, false);
  EXPECT_EQ(first.str(), second.str());
}

// All times come from the rates: a machine twice as fast takes half the time.
TEST(ScenarioDemoTest, TimesScaleWithTheMachine) {
  const CpuRates slow{.prefill = 300, .decode_1 = 20, .decode_4 = 50};
  const CpuRates fast{.prefill = 600, .decode_1 = 40, .decode_4 = 100};
  EXPECT_NEAR(Simulated("round_robin", slow).ttft_p50_s / Simulated("round_robin", fast).ttft_p50_s,
              2, 0.2);
}

TEST(CpuSetupTest, ComputesAtTheRatesThatWereMeasured) {
  const auto cpu = CpuSetup({.prefill = 300, .decode_1 = 20, .decode_4 = 50}, 5'000);
  ASSERT_TRUE(cpu);
  const StepModel model(*cpu);
  EXPECT_NEAR(model.TokenSeconds(0, 300), 1, 1e-9);
  EXPECT_NEAR(model.DecodeSeconds(1, 1'000), 1.0 / 20, 1e-9);
  EXPECT_NEAR(model.DecodeSeconds(4, 4'000), 4.0 / 50, 1e-9);
}

TEST(CpuSetupTest, RefusesRatesThatNoEngineHas) {
  EXPECT_EQ(CpuSetup({.prefill = 0}, 1).error().param, "rates");
  EXPECT_EQ(CpuSetup({.decode_1 = 20, .decode_4 = 10}, 1).error().param, "rates");  // one by one
  EXPECT_EQ(CpuSetup({.decode_1 = 20, .decode_4 = 100}, 1).error().param, "rates");
}

}  // namespace
}  // namespace hidane::sim
