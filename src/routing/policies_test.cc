// What characterizes each policy; what all have in common is in router_test.cc.
#include "routing/policies.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "routing/routing_test_util.h"

namespace hidane::routing {
namespace {

// A router of `n` equal workers under one policy.
class Cluster {
 public:
  Cluster(std::string_view policy, uint32_t n, const Params& params = {}) : router(params) {
    for (uint32_t w = 0; w < n; ++w) router.PutWorker(TestWorker(w, 1'000'000), now);
    EXPECT_TRUE(router.SetPolicy(policy));
  }
  Decision Send(const prompt::Identity& prompt) {
    return *router.Route({.identity = prompt, .max_tokens = 50}, now);
  }
  Decision Serve(const prompt::Identity& prompt) {
    const Decision d = Send(prompt);
    now += FromSeconds(0.1);
    router.OnFirstByte(d.ticket, now);
    router.OnDone(d.ticket, End::kComplete, now);
    return d;
  }

  Router router;
  TimePoint now = At(1);
};

prompt::Identity Tenant(uint64_t tenant, uint64_t own, uint32_t own_tokens = 64) {
  return TenantPrompt(tenant, 6'400, Mix64(own), own_tokens);
}

std::vector<uint32_t> Walk(Cluster& cluster, uint64_t requests) {
  std::vector<uint32_t> workers;
  for (uint64_t i = 0; i < requests; ++i) {
    workers.push_back(cluster.Serve(Tenant(1, i)).worker.value());
  }
  return workers;
}

TEST(RoundRobinTest, GoesInTurnAndPassesOverTheOnesThatAreOut) {
  Cluster c("round_robin", 3);
  EXPECT_EQ(Walk(c, 4), (std::vector<uint32_t>{0, 1, 2, 0}));
  c.router.DrainWorker(WorkerId(1), true, c.now);
  EXPECT_EQ(Walk(c, 3), (std::vector<uint32_t>{2, 0, 2}));
}

TEST(RandomTest, IsUniformAndEachGatewayDrawsItsOwnLots) {
  Cluster c("random", 4);
  std::map<uint32_t, int> count;
  const auto walk = Walk(c, 4'000);
  for (const uint32_t w : walk) ++count[w];
  for (const auto& [worker, n] : count) EXPECT_NEAR(n, 1'000, 100) << worker;

  Cluster same("random", 4);
  Cluster other("random", 4, Params{.replica = 1});
  EXPECT_EQ(Walk(same, 4'000), walk);
  EXPECT_NE(Walk(other, 4'000), walk);
}

TEST(LeastTokensTest, CountsTokensAndNotRequests) {
  Cluster c("least_tokens", 2);
  const WorkerId large = c.Send(Tenant(1, 1, 30'000)).worker;
  for (uint64_t i = 0; i < 4; ++i) EXPECT_NE(c.Send(Tenant(2, i, 512)).worker, large);
}

TEST(PowerOfTwoTest, BeatsOneRandomChoiceAndNeverTakesTheFullerOfTwo) {
  const auto most = [](std::string_view policy) {
    Cluster c(policy, 16);
    for (uint64_t i = 0; i < 320; ++i) c.Send(Tenant(i, i));
    uint32_t largest = 0;
    for (const WorkerView& v : c.router.Workers(c.now)) largest = std::max(largest, v.in_flight);
    return largest;
  };
  EXPECT_LE(most("power_of_two"), 22u) << "20 on average";
  EXPECT_GE(most("random"), 25u);

  Cluster two("power_of_two", 2);
  const WorkerId busy = two.Send(Tenant(1, 1, 30'000)).worker;
  for (uint64_t i = 0; i < 20; ++i) EXPECT_NE(two.Serve(Tenant(2, i)).worker, busy);
}

TEST(SessionTest, AConversationStaysWhateverTheLoadAndConversationsSpread) {
  Cluster c("session", 4);
  std::set<WorkerId> used;
  for (uint64_t talk = 0; talk < 40; ++talk) {
    std::vector<TestPart> parts{{1, 6'400}, {Mix64(talk), 64}};
    const WorkerId first = c.Send(MakePrompt(parts)).worker;
    used.insert(first);
    for (uint64_t turn = 0; turn < 5; ++turn) {
      parts.push_back({Mix64(talk * 100 + turn), 640});
      EXPECT_EQ(c.Send(MakePrompt(parts)).worker, first);
    }
  }
  EXPECT_EQ(used.size(), 4u);
}

TEST(FixedHashTest, AHotHeadRunsOverItsBoundAndADeepDifferenceIsNotSeen) {
  Cluster c("fixed_hash", 3);
  const WorkerId home = c.Serve(Tenant(1, 1)).worker;
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(c.Serve(Tenant(1, i)).worker, home);
  std::set<WorkerId> used;
  for (uint64_t i = 0; i < 30; ++i) used.insert(c.Send(Tenant(1, i)).worker);
  EXPECT_EQ(used.size(), 3u) << "a hot prefix runs over";

  // One universal beginning of 512 tokens, then tenants of their own: all on one worker.
  Cluster trap("fixed_hash", 8);
  used.clear();
  for (uint64_t t = 0; t < 50; ++t) {
    used.insert(trap.Serve(MakePrompt({{7, 512}, {Mix64(t), 6'400}})).worker);
  }
  EXPECT_EQ(used.size(), 1u);
  Cluster deep("fixed_hash", 8, Params{.fixed_hash_tokens = 1'024});
  for (uint64_t t = 0; t < 50; ++t) {
    used.insert(deep.Serve(MakePrompt({{7, 512}, {Mix64(t), 6'400}})).worker);
  }
  EXPECT_GT(used.size(), 4u);
}

TEST(TreeTest, TheLongestMatchWinsUntilTheQueuesAreImbalanced) {
  Cluster c("tree", 4);
  const WorkerId first = c.Serve(Tenant(1, 1)).worker;
  EXPECT_NE(c.Serve(Tenant(2, 1)).worker, first) << "no match: the smallest tree";
  std::set<WorkerId> used;
  for (uint64_t i = 0; i < 64; ++i) EXPECT_EQ(c.Send(Tenant(1, i)).worker, first);
  c.Send(Tenant(1, 64));
  EXPECT_NE(c.Send(Tenant(1, 65)).worker, first) << "more than 64 ahead, and more than 1.5 times";
}

TEST(CostTest, ChoosesFreelyAndAMissCostsTwice) {
  Cluster c("cost", 2);
  const auto tenant_1 = c.Serve(Tenant(1, 1));
  EXPECT_EQ(tenant_1.candidates.size(), 2u) << "all are compared";
  // 0.65 s of prefill elsewhere counts twice: so the holder may be 1.3 s busier.
  for (uint64_t i = 2; c.Send(Tenant(1, i, 2'048)).worker == tenant_1.worker;) ++i;
  for (const WorkerView& v : c.router.Workers(c.now)) {
    if (v.id == tenant_1.worker) {
      EXPECT_NEAR(v.wait_s, 1.3, 0.25);
    }
  }
}

// Each policy is a page that a stranger reads at once.
TEST(PoliciesTest, APolicyFileStaysUnder150Lines) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HIDANE_SOURCE_DIR "/src/routing")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("policy_") || !name.ends_with(".cc")) continue;
    std::ifstream file(entry.path());
    size_t lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    EXPECT_LT(lines, 150u) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, Router::Policies().size());
}

}  // namespace
}  // namespace hidane::routing
