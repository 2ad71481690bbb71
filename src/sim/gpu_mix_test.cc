#include "sim/gpu_mix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "sim/scenario_agents.h"
#include "sim/scenario_seed.h"
#include "sim/scenario_storm.h"

namespace hidane::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kMix = "3x8b-bf16-h100,8b-fp8-h200";

std::vector<std::string> Names(const std::vector<EngineOptions>& engines) {
  std::vector<std::string> names;
  for (const EngineOptions& engine : engines) names.emplace_back(engine.gpu.name);
  return names;
}

TEST(GpuMix, OneNameIsTheWholeFleet) {
  const auto gpus = *FindGpuSetups("8b-fp8-h200", 3);
  ASSERT_EQ(gpus.size(), 3u);
  EXPECT_EQ(gpus.back().name, "8b-fp8-h200");
}

TEST(GpuMix, PartsFollowEachOtherOverTheFleet) {
  const auto gpus = *FindGpuSetups("2x8b-bf16-h100,8b-fp8-h200", 6);
  EXPECT_THAT(Names(EnginesOn(gpus, {})),
              ElementsAre("8b-bf16-h100", "8b-bf16-h100", "8b-fp8-h200", "8b-bf16-h100",
                          "8b-bf16-h100", "8b-fp8-h200"));
}

TEST(GpuMix, NamesWhatIsWrongWithIt) {
  const auto what = [](const char* text, uint32_t replicas) {
    const auto gpus = FindGpuSetups(text, replicas);
    EXPECT_FALSE(gpus) << text;
    return gpus ? "" : gpus.error().what;
  };
  EXPECT_THAT(what("2x8b,1xnone", 3), HasSubstr("`none`"));
  EXPECT_THAT(what("2x8b,", 3), HasSubstr("``"));
  EXPECT_THAT(what("0x8b,8b", 3), HasSubstr("0 replicas in `0x8b`"));
  EXPECT_THAT(what("3x8b,8b-fp8", 6), HasSubstr("6 replicas are no multiple of the 4"));
  EXPECT_THAT(what("2x8b", 3), HasSubstr("no multiple of the 2"));
  EXPECT_THAT(what("2x8b,70b-fp8-h100", 3), HasSubstr("do not serve the same model"));
}

// Every scenario that takes replicas takes a mix of them.
TEST(GpuMix, IsTheFleetOfEveryScenario) {
  const auto expect_mixed = [](const Result<sim::Setup>& setup) {
    ASSERT_TRUE(setup);
    EXPECT_THAT(Names(setup->engines),
                ElementsAre("8b-bf16-h100", "8b-bf16-h100", "8b-bf16-h100", "8b-fp8-h200"));
    EXPECT_FALSE(Uniform(setup->engines));
  };
  SeedRun seed{.fleet = *ParseSeedFleet("4x20"), .gpu = kMix};
  expect_mixed(SeedSetup(seed));
  StormRun storm{.fleet = *ParseSeedFleet("4x20"), .gpu = kMix};
  expect_mixed(StormSetup(storm));
  ReplayRun agents = AgentsRun(nullptr, *FindAgentsLoad("85"), 4);
  agents.gpu = kMix;
  expect_mixed(ReplaySetup(agents));
  agents.replicas = 5;
  EXPECT_EQ(ReplaySetup(agents).error().param, "gpu");
}

TEST(GpuMix, PrefixesAreDealtByMemory) {
  SeedRun run{.fleet = *ParseSeedFleet("4x60"), .gpu = kMix, .requests = 300};
  sim::Setup setup = *SeedSetup(run);
  setup.series_step = std::chrono::seconds(1);
  const sim::Run mixed = *SimulateSeed(run, setup);
  EXPECT_GT(mixed.row.hit_ratio, 0.9);  // 60 x 27,000 tokens fit 3 x 400,000 + 945,029
  const auto& last = mixed.series.points[mixed.series.points.size() / 2];
  // As full as the small ones, so about 2.4 times as many prefixes live on the large one.
  EXPECT_GT(last.assigned[0], 0.4);
  EXPECT_NEAR(last.assigned[3], last.assigned[0], 0.15);
}

TEST(GpuMix, ABurstOnUnequalReplicasHasNoMakespanBound) {
  SeedRun run{.fleet = *ParseSeedFleet("4x20"), .phase = SeedPhase::kColdBurst, .gpu = kMix};
  EXPECT_TRUE(std::isnan(SimulateSeed(run, *SeedSetup(run))->row.makespan_bound_s));
}

}  // namespace
}  // namespace hidane::sim
