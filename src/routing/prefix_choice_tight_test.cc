// The policy `prefix` where more prefixes live than the fleet's memory holds.
#include <gtest/gtest.h>

#include <set>

#include "routing/prefix_choice.h"
#include "routing/router.h"
#include "routing/routing_test_util.h"

namespace hidane::routing {
namespace {

constexpr uint32_t kStatic = 19'200;  // four of them may be assigned to a worker, five fit

class Fleet {
 public:
  explicit Fleet(uint32_t workers, uint32_t replica = 0) : router(Params{.replica = replica}) {
    for (uint32_t w = 0; w < workers; ++w) router.PutWorker(TestWorker(w, 100'000), now);
  }
  prompt::Identity Prompt(uint64_t tenant, uint32_t own_tokens) {
    return TenantPrompt(tenant, kStatic, Mix64(++asked_), own_tokens);
  }
  Decision Route(uint64_t tenant, uint32_t own_tokens = 64) {
    now += FromSeconds(0.5);
    return *router.Route({.identity = Prompt(tenant, own_tokens), .max_tokens = 50}, now);
  }
  Decision Serve(uint64_t tenant, uint32_t own_tokens = 64) {
    Decision d = Route(tenant, own_tokens);
    router.OnFirstByte(d.ticket, now);
    router.OnDone(d.ticket, End::kComplete, now);
    return d;
  }
  // As if all other workers were out.
  void ServeAt(WorkerId only, std::initializer_list<uint64_t> tenants, uint32_t own_tokens = 64) {
    for (const WorkerView& w : router.Workers(now)) router.DrainWorker(w.id, w.id != only, now);
    for (const uint64_t tenant : tenants) EXPECT_EQ(Serve(tenant, own_tokens).worker, only);
    for (const WorkerView& w : router.Workers(now)) router.DrainWorker(w.id, false, now);
  }
  uint64_t Assigned(WorkerId id) const { return router.Workers(now)[id.value()].assigned_tokens; }
  std::vector<Delta> Uses() {
    auto deltas = router.TakeDeltas();
    std::erase_if(deltas, [](const Delta& d) { return d.kind != Delta::Kind::kUse; });
    return deltas;
  }

  Router router;
  TimePoint now = At(1);

 private:
  uint64_t asked_ = 0;
};

constexpr WorkerId kA(0);
constexpr WorkerId kB(1);

TEST(PrefixChoiceTightTest, APrefixMovesOnceItIsGoneWhereTooMuchIsPromised) {
  Fleet f(2);
  f.ServeAt(kB, {11, 12, 13, 14});
  f.ServeAt(kA, {1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(f.Assigned(kA), 7 * kStatic);
  EXPECT_EQ(f.Serve(7).worker, kA) << "it is cached there";
  const Decision moved = f.Serve(1);
  EXPECT_EQ(moved.worker, kB) << "evicted, so it is computed anew anyway";
  EXPECT_EQ(moved.rule, Rule::kPlaced);
  EXPECT_EQ(f.Assigned(kA), 6 * kStatic);
  EXPECT_EQ(f.Assigned(kB), 5 * kStatic);
  EXPECT_EQ(f.Serve(1).worker, kB);
}

TEST(PrefixChoiceTightTest, AnOverfullWorkerIsRelievedOnceAnotherHasRoom) {
  Fleet f(2);
  f.ServeAt(kA, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(f.Assigned(kA), 8 * kStatic);
  for (int round = 0; round < 4; ++round) {
    for (uint64_t tenant = 1; tenant <= 8; ++tenant) f.Serve(tenant);
  }
  // The sixth is only evicted in part, which counts as cached.
  EXPECT_LE(f.Assigned(kA), 6 * kStatic);
  EXPECT_LE(f.Assigned(kB), 90'000u);
}

TEST(PrefixChoiceTightTest, NotEachColdOneMovesWhereAllCachesForgetAlike) {
  Fleet f(2);
  f.ServeAt(kA, {1, 2, 3, 4, 5, 6});
  f.ServeAt(kB, {11, 12, 13, 14, 15, 16});
  int moves = 0;
  for (int round = 0; round < 10; ++round) {
    for (uint64_t tenant = 1; tenant <= 6; ++tenant) {
      moves += f.Serve(tenant, 6'400).rule == Rule::kPlaced;
      moves += f.Serve(10 + tenant, 6'400).rule == Rule::kPlaced;
    }
  }
  EXPECT_LT(moves, 80) << "of 120 cold ones";
}

TEST(PrefixChoiceTightTest, WhereNothingFitsANewPrefixPushesOutWhatNobodyUses) {
  Fleet f(2);
  f.ServeAt(kA, {1, 2, 3, 4, 5, 6});
  f.ServeAt(kB, {11, 12, 13, 14});
  for (int i = 0; i < 40; ++i) f.Serve(11 + i % 4, 6'400);  // the tenants of A have left
  EXPECT_EQ(f.Serve(21).worker, kA) << "though more is promised there";
}

TEST(PrefixChoiceTightTest, ARefugeIsTheSameForAllRequestsOfAPrefix) {
  Fleet f(3);
  for (uint64_t tenant = 2; tenant < 8; ++tenant) f.Serve(tenant);
  const WorkerId home = f.Serve(1).worker;
  f.router.DrainWorker(home, true, f.now);
  const Decision fled = f.Serve(1);
  EXPECT_NE(fled.worker, home);
  EXPECT_EQ(fled.rule, Rule::kFailover);
  EXPECT_EQ(f.Serve(1).worker, fled.worker);
}

TEST(PrefixChoiceTightTest, ARefugeIsKeptThoughMemoryIsShortWhileTheHomeIsOut) {
  Fleet f(2);
  f.ServeAt(kA, {1, 2, 3, 4});
  f.ServeAt(kB, {11, 12, 13, 14});
  f.router.DrainWorker(kA, true, f.now);
  EXPECT_EQ(f.Serve(1).worker, kB);
  for (int i = 0; i < 20; ++i) f.Serve(11 + i % 4);
  EXPECT_EQ(f.Assigned(kB), 5 * kStatic);
  f.router.DrainWorker(kA, false, f.now);
  for (int i = 0; i < 6; ++i) f.Serve(11 + i % 4);
  EXPECT_EQ(f.Assigned(kB), 4 * kStatic) << "the home is back and holds it";
}

TEST(PrefixChoiceTightTest, AHomeThatCameBackEmptyGivesUpWhatCrowdsItsRefuge) {
  Fleet f(2);
  f.ServeAt(kA, {1, 2, 3, 4});
  f.ServeAt(kB, {11, 12, 13, 14});
  f.router.DrainWorker(kA, true, f.now);
  f.Serve(1);
  f.router.ClearCache(kA);
  f.router.DrainWorker(kA, false, f.now);
  for (int i = 0; i < 6; ++i) f.Serve(11 + i % 4);
  EXPECT_EQ(f.Assigned(kA), 3 * kStatic);
  EXPECT_EQ(f.Assigned(kB), 5 * kStatic);
}

TEST(PrefixChoiceTightTest, APrefixThatIsMostOfAWorkersLoadIsComputedElsewhereToo) {
  Fleet f(4);
  for (uint32_t w = 0; w < 4; ++w) {
    f.ServeAt(WorkerId(w), {10 * w + 1, 10 * w + 2, 10 * w + 3, 10 * w + 4});
  }
  std::set<WorkerId> busy;
  for (uint64_t i = 0; i < 200; ++i) {
    const Decision d = f.Route(1);
    f.router.OnFirstByte(d.ticket, f.now);  // and goes on
    busy.insert(d.worker);
    f.Serve(10 * (i % 4) + 2 + i / 4 % 3);
  }
  EXPECT_GT(busy.size(), 1u);
}

TEST(PrefixChoiceTightTest, OnceOthersAreThereEachUseIsTold) {
  Fleet a(2, 1);
  Fleet b(2, 2);
  const WorkerId home = a.Serve(1).worker;
  EXPECT_TRUE(a.Uses().empty()) << "nobody is there to hear it";
  b.Serve(2);
  for (const Delta& d : b.router.TakeDeltas()) a.router.Merge(d, a.now);
  a.Serve(1, 640);
  const auto uses = a.Uses();
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_EQ(uses[0].key, a.Prompt(1, 640).k1());
  EXPECT_EQ(uses[0].worker, TestWorkerKey(home));
  EXPECT_EQ(uses[0].tokens, 640u);
}

TEST(PrefixChoiceTightTest, WhatOthersUseIsNotGone) {
  for (const bool told : {false, true}) {
    Fleet a(2, 1);
    Fleet b(2, 2);
    const auto tell = [&] {
      for (const Delta& d : b.router.TakeDeltas()) a.router.Merge(d, a.now);
      for (const Delta& d : a.router.TakeDeltas()) b.router.Merge(d, a.now);
      b.now = a.now;
    };
    b.Serve(9);
    tell();
    a.ServeAt(kA, {1, 2, 3, 4, 5, 6});
    tell();
    b.Serve(1);  // it would be the next to go
    if (told) tell();
    a.ServeAt(kA, {7});
    EXPECT_EQ(a.Serve(1).worker, told ? kA : kB);
  }
}

}  // namespace
}  // namespace hidane::routing
