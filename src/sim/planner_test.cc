#include "sim/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "sim/planner_answer.h"
#include "sim/tenant_loop.h"

namespace hidane::sim {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

PlanTrial TrialOf(uint32_t replicas, uint32_t meets, uint32_t sustains) {
  PlanTrial trial{.replicas = replicas};
  trial.met = replicas >= meets;
  trial.sustained = replicas >= sustains;
  return trial;
}

bool Met(const PlanTrial& trial) {
  return trial.met;
}

RC_GTEST_PROP(LeastReplicas, FindsTheFirstThatIsEnoughWithFewProbes, ()) {
  const auto most = *rc::gen::inRange<uint32_t>(1, 5'000);
  const auto start = *rc::gen::inRange<uint32_t>(1, most + 1);
  const auto needs = *rc::gen::inRange<uint32_t>(1, most + 2);  // most + 1: never enough
  std::multiset<uint32_t> probed;
  const auto found = LeastReplicas(
      start, most,
      [&](uint32_t n) -> Result<PlanTrial> {
        probed.insert(n);
        return TrialOf(n, needs, needs);
      },
      Met);
  RC_ASSERT(found.has_value());
  RC_ASSERT(found->has_value() == (needs <= most));
  if (*found) RC_ASSERT((*found)->replicas == needs);
  RC_ASSERT(probed.size() == std::set(probed.begin(), probed.end()).size());
  RC_ASSERT(probed.size() <= 27u);  // two per doubling
  RC_ASSERT(*probed.begin() >= 1u && *probed.rbegin() <= most);
}

TEST(LeastReplicas, EndsWithTheProbesError) {
  const Probe stopped = [](uint32_t) -> Result<PlanTrial> { return Fail(Code::kCancelled, "x"); };
  const auto found = LeastReplicas(3, 8, stopped, Met);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kCancelled);
}

TEST(PlanPolicy, LooksForTheRateOnlyWhereTheGoalIsOutOfReach) {
  int probes = 0;
  const auto plan = [&](uint32_t meets) {
    return PlanPolicy("p", 2, 64, [&, meets](uint32_t n) -> Result<PlanTrial> {
      ++probes;
      return TrialOf(n, meets, 20);
    });
  };
  const auto met = plan(30);
  ASSERT_TRUE(met && met->least);
  EXPECT_EQ(met->least->replicas, 30u);
  EXPECT_FALSE(met->sustains);
  probes = 0;
  const auto missed = plan(65);
  ASSERT_TRUE(missed && missed->sustains);
  EXPECT_FALSE(missed->least);
  EXPECT_EQ(missed->sustains->replicas, 20u);
  EXPECT_LE(probes, 12) << "the first search's probes serve the second";
}

PlanRow RowOf(std::string policy, std::optional<uint32_t> needs, double hit = 0.1) {
  PlanRow row{.policy = std::move(policy), .least = {}, .sustains = {}};
  if (!needs) return row;
  row.least = PlanTrial{.replicas = *needs, .sustained = true, .met = true};
  row.least->row.hit_ratio = hit;
  return row;
}

std::string Answer(std::vector<PlanRow> rows, PlanDemand demand = {}) {
  return PlanAnswer(rows, demand, *FindGpuSetup("8b-bf16-h100"), 64);
}

TEST(PlanAnswer, SaysWhatPrefixSaves) {
  EXPECT_EQ(Answer({RowOf("prefix", 8), RowOf("round_robin", 32), RowOf("cost", 8)}),
            "prefix needs 8 replicas where round_robin needs 32: it saves 24 (75 %). With one "
            "gateway as few are enough for: cost.");
  EXPECT_THAT(Answer({RowOf("prefix", 1), RowOf("round_robin", std::nullopt)}),
              StartsWith("prefix needs 1 replica; round_robin does not meet the goal with 64"));
}

TEST(PlanAnswer, TellsWhoDoesNotNeedIt) {
  PlanDemand demand{.tenants = 4};
  EXPECT_EQ(
      Answer({RowOf("prefix", 7), RowOf("round_robin", 7, 0.963)}, demand),
      "You don't need this: round_robin needs 7 replicas, as prefix does. Every replica keeps "
      "the static prompts of all 4 tenants: they take 27 % of its KV memory.");
  demand = {.tenants = 500, .static_tokens = 500, .own_tokens = 2'000};
  EXPECT_THAT(Answer({RowOf("prefix", 6), RowOf("round_robin", 5)}, demand),
              HasSubstr("round_robin needs 5 replicas, prefix 6. Static prompts are short"));
  EXPECT_THAT(Answer({RowOf("prefix", std::nullopt), RowOf("round_robin", 5)}),
              HasSubstr("and 64 are not enough for prefix. The load sets"));
}

TEST(PlanAnswer, SaysWhenNothingIsEnough) {
  EXPECT_THAT(Answer({RowOf("prefix", std::nullopt), RowOf("round_robin", std::nullopt)}),
              StartsWith("64 replicas are not enough"));
  EXPECT_EQ(Answer({RowOf("prefix", 3)}), "");
}

TEST(Check, ARequestHasToFitTheMemory) {
  const GpuSetup gpu = *FindGpuSetup("8b-bf16-h100");
  EXPECT_TRUE(Check({}, gpu));
  const auto status = Check({.static_tokens = 400'000}, gpu);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kInvalidArgument);
}

TEST(TenantLoop, AnOpenLoopArrivesAtItsRate) {
  TenantLoop loop({.tenants = 3, .rate_per_s = 50, .requests = 6'000, .uncounted = 2'000});
  TimePoint last{}, half{}, counted{};
  for (uint64_t i = 0; i < 6'000; ++i) {
    const auto request = loop.Next();
    ASSERT_TRUE(request);
    ASSERT_GE(request->arrival, last);
    EXPECT_EQ(request->counted, i >= 2'000);
    last = request->arrival;
    if (i == 999) half = last;
    if (i == 1'999) counted = last;
    EXPECT_FALSE(loop.After({.request = *request, .ok = true}, last));
  }
  EXPECT_FALSE(loop.Next());
  EXPECT_EQ(loop.sent(), 6'000u);
  EXPECT_NEAR(1'000 / Seconds(half), 25, 2);
  EXPECT_NEAR(4'000 / Seconds(last - counted), 50, 3);
}

TEST(TryReplicas, ASmallPlanComesOut) {
  const PlanDemand demand{.tenants = 30, .static_tokens = 20'000, .rate_per_s = 5};
  const GpuSetup gpu = *FindGpuSetup("8b-bf16-h100");
  const auto plan = [&](const char* policy) {
    return PlanPolicy(policy, ReplicasAtLeast(demand, gpu), 3, [&](uint32_t n) {
      return TryReplicas(demand, gpu, policy, n, 1, [] { return true; });
    });
  };
  const auto prefix = plan("prefix"), robin = plan("round_robin");
  ASSERT_TRUE(prefix && prefix->least && robin);
  EXPECT_EQ(prefix->least->replicas, 2u);
  EXPECT_GT(prefix->least->row.hit_ratio, 0.94);
  EXPECT_LE(prefix->least->row.ttft_p99_s, 1.0);
  EXPECT_GT(prefix->least->kv_held, 0.05);
  EXPECT_FALSE(robin->least);
}

TEST(TryReplicas, KeptWarmPrefixesAreComputedAnewLess) {
  PlanDemand demand{.tenants = 50, .rate_per_s = 10};
  const auto run = [&] {
    return *TryReplicas(demand, *FindGpuSetup("8b-bf16-h100"), "prefix", 4, 1, [] { return true; });
  };
  const PlanTrial without = run();
  demand.params.keep_warm = true;
  const PlanTrial with = run();
  EXPECT_EQ(without.row.keep_warm, "off");
  EXPECT_EQ(with.row.keep_warm, "on");
  EXPECT_GT(with.row.refresh_share, 0);
  EXPECT_LT(with.row.recompute_share, without.row.recompute_share);
}

TEST(TryReplicas, IsStoppedByItsOwner) {
  const auto trial =
      TryReplicas({}, *FindGpuSetup("8b-bf16-h100"), "prefix", 2, 1, [] { return false; });
  ASSERT_FALSE(trial);
  EXPECT_EQ(trial.error().code, Code::kCancelled);
}

}  // namespace
}  // namespace hidane::sim
