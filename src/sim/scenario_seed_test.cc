#include "sim/scenario_seed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/hash.h"
#include "sim/matrix.h"

namespace hidane::sim {
namespace {

Row RunSeed(SeedPhase phase, const std::string& policy, uint64_t seed = 1) {
  SeedRun run;
  run.fleet = *ParseSeedFleet("16x80");
  run.phase = phase;
  run.policy = policy;
  run.seed = seed;
  return SimulateSeed(run, *SeedSetup(run))->row;
}

TEST(SeedFleet, ReadsReplicasTenantsAndPopularity) {
  const SeedFleet fleet = *ParseSeedFleet("16x200-zipf0.8");
  EXPECT_EQ(fleet.replicas, 16u);
  EXPECT_EQ(fleet.tenants, 200u);
  EXPECT_EQ(fleet.zipf_s, 0.8);
  EXPECT_EQ(ParseSeedFleet("3x5")->zipf_s, 0);
  EXPECT_TRUE(ParseSeedFleet("16x100-servegen")->servegen);
  EXPECT_FALSE(ParseSeedFleet("16x100-servegen-zipf1"));
  for (const char* bad : {"", "16", "16x", "x80", "16x80-", "16x80-zipf", "16x80-zipf1x", "0x80",
                          "16x0", "16x80-zipf-1", "99999x1", "16x80 "}) {
    const auto parsed = ParseSeedFleet(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_THAT(parsed.error().what, testing::HasSubstr('"' + std::string(bad) + '"'));
  }
}

TEST(SeedPhase, HasAName) {
  for (const SeedPhase phase : SeedPhases()) EXPECT_EQ(*ParseSeedPhase(Name(phase)), phase);
  EXPECT_EQ(ParseSeedPhase("calm").error().param, "phase");
}

// The control that must fail: a fleet behind round robin, 100 requests at once.
TEST(SeedScenario, RoundRobinCollapsesInAColdBurst) {
  const Row row = RunSeed(SeedPhase::kColdBurst, "round_robin");
  EXPECT_EQ(row.requests, 100);
  EXPECT_GE(row.hit_ratio, 0.03);
  EXPECT_LE(row.hit_ratio, 0.08);
  EXPECT_GE(row.ttft_p99_s, 7.8);
  EXPECT_LE(row.ttft_p99_s, 8.5);
  EXPECT_GE(row.static_prefill_share, 0.70);
  EXPECT_LE(row.static_prefill_share, 0.725);
  EXPECT_NEAR(row.makespan_bound_s, 4.4, 0.2);
}

TEST(SeedScenario, NoRunPassesItsBound) {
  for (const char* policy : {"round_robin", "prefix", "cost"}) {
    const Row row = RunSeed(SeedPhase::kColdBurst, policy, 3);
    EXPECT_LE(row.hit_ratio, row.hit_ratio_bound) << policy;
    EXPECT_GE(row.ttft_p99_s, row.makespan_bound_s * 0.9) << policy;
    EXPECT_GE(row.load_imbalance, row.load_imbalance_bound) << policy;
  }
}

// One prefix of 27,000 tokens is computed somewhere, and who knows all caches sends it nowhere
// else.
TEST(SeedScenario, ImbalanceIsAtLeastThatOfTheLongestPrefill) {
  SeedRun run{.fleet = *ParseSeedFleet("16x1"), .phase = SeedPhase::kColdBurst, .policy = "oracle"};
  const Row row = SimulateSeed(run, *SeedSetup(run))->row;
  EXPECT_GT(row.load_imbalance_bound, 1.5);
  EXPECT_GE(row.load_imbalance, row.load_imbalance_bound);
}

TEST(SeedMatrix, HasAboutAHundredCellsAndKeepsToThePoliciesAskedFor) {
  const auto all = *SeedMatrix({});
  EXPECT_GE(all.size(), 90u);
  EXPECT_LE(all.size(), 120u);
  const auto some = *SeedMatrix({.policies = {"prefix"}});
  EXPECT_LT(some.size(), all.size());
  for (const Cell& cell : some) EXPECT_EQ(cell.front().policy, "prefix");
}

TEST(SeedMatrix, IsAProductWhereListsAreGiven) {
  const auto cells = *SeedMatrix({.policies = {"prefix", "cost"},
                                  .fleets = {"4x8", "2x3-zipf1"},
                                  .gateways = {1, 2, 3},
                                  .requests = 77});
  EXPECT_EQ(cells.size(), 2u * 2 * 3);
  EXPECT_EQ(cells.front().front().requests, 77u);
  EXPECT_EQ(cells.front().front().phase, SeedPhase::kSustained);
}

TEST(SeedMatrix, FullRunsEachCellWithSeedsOfItsOwn) {
  const auto cells = *SeedMatrix({.policies = {"prefix"}, .full = true, .seed = 7});
  for (const Cell& cell : cells) {
    ASSERT_EQ(cell.size(), kFullSeeds);
    EXPECT_EQ(cell.front().seed, 7u);
    EXPECT_EQ(cell.back().seed, 7 + kFullSeeds - 1);
  }
}

TEST(SeedMatrix, NamesWhatItDoesNotKnow) {
  EXPECT_EQ(SeedMatrix({.policies = {"best"}}).error().param, "policy");
  EXPECT_EQ(SeedMatrix({.fleets = {"huge"}}).error().param, "fleet");
  EXPECT_EQ(SeedMatrix({.phases = {"calm"}}).error().param, "phase");
}

}  // namespace
}  // namespace hidane::sim
