// Same seed, same rows, on every compiler and build type: the rows' text is compared with what was
// committed. A change of a rule or of the workload changes a digest; then, and only then, the new
// one that the failure prints is committed with it.
#include <gtest/gtest.h>

#include <string>

#include "base/hash.h"
#include "sim/scenario_seed.h"

namespace hidane::sim {
namespace {

std::string Rows(const std::string& policy, bool keep_warm = false) {
  JsonWriter out;
  for (const char* fleet : {"4x14", "3x40-zipf1"}) {
    for (const SeedPhase phase : {SeedPhase::kColdBurst, SeedPhase::kChurn}) {
      SeedRun run;
      run.fleet = *ParseSeedFleet(fleet);
      run.phase = phase;
      run.policy = policy;
      run.gateways = 2;
      run.deltas = Deltas::kLate;
      run.params.keep_warm = keep_warm;
      run.requests = 60;
      Setup setup = *SeedSetup(run);
      setup.plan.losses.push_back({.worker = 1, .at = FromSeconds(10), .down = FromSeconds(5)});
      AppendJson(SimulateSeed(run, setup)->row, out, /*wall=*/false);
    }
  }
  return out.Take();
}

TEST(Determinism, RowsOfRoundRobinAreTheSameEverywhere) {
  const std::string rows = Rows("round_robin");
  EXPECT_EQ(Xxh3(rows), 17300792235832164993u) << rows;
}

TEST(Determinism, RowsOfPrefixAreTheSameEverywhere) {
  const std::string rows = Rows("prefix");
  EXPECT_EQ(Xxh3(rows), 13234384561720673641u) << rows;
}

TEST(Determinism, RowsOfPrefixKeptWarmAreTheSameEverywhere) {
  const std::string rows = Rows("prefix", /*keep_warm=*/true);
  EXPECT_EQ(Xxh3(rows), 4053832589865607987u) << rows;
}

}  // namespace
}  // namespace hidane::sim
