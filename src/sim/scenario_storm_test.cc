#include "sim/scenario_storm.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hidane::sim {
namespace {

Row Storm(StormGuard guard, const routing::Params& params = {}) {
  StormRun run;
  run.params = params;
  run.fleet = *ParseSeedFleet("2x10");
  run.guard = guard;
  return SimulateStorm(run, *StormSetup(run))->row;
}

const double kCapacity = 2 * StormRun().capacity_per_replica;

TEST(Storm, APlainProxyNeverComesBack) {
  const Row row = Storm(StormGuard::kNone);
  EXPECT_TRUE(std::isnan(row.recovery_s));
  EXPECT_GT(row.sends_per_request, 2);
  EXPECT_LT(row.after_rps, 0.3 * kCapacity);
}

TEST(Storm, EnginesThatDropWhatNobodyWaitsForComeBack) {
  const Row row = Storm(StormGuard::kCancel);
  EXPECT_LE(row.recovery_s, 30);
  EXPECT_GT(row.surge_rps, 0.9 * kCapacity);
  EXPECT_GT(row.after_rps, 0.6 * kCapacity);
}

TEST(Storm, RetriesThatFindTheirRunsAreSentLessOften) {
  const Row attach = Storm(StormGuard::kAttach);
  const Row cancel = Storm(StormGuard::kCancel);
  EXPECT_LT(attach.sends_per_request, cancel.sends_per_request);
  EXPECT_LE(attach.recovery_s, 30);
}

TEST(Storm, SpareHomesTakeMemoryThatAStormWants) {
  const Row with = Storm(StormGuard::kCancel, {.spare_mark = 0.7});
  const Row without = Storm(StormGuard::kCancel, {.spare_mark = 0});
  EXPECT_GT(with.mean_homes, 1.5);
  EXPECT_LT(without.mean_homes, 1.2);
  EXPECT_GT(without.surge_rps, 1.3 * with.surge_rps);
}

TEST(Storm, NamesAnUnknownGuard) {
  const auto guard = ParseStormGuard("prayer");
  ASSERT_FALSE(guard);
  EXPECT_EQ(guard.error().param, "guard");
}

}  // namespace
}  // namespace hidane::sim
