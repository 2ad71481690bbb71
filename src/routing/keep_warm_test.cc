#include "routing/keep_warm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "routing/routing_test_util.h"
#include "routing/worker_state.h"

namespace hidane::routing {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(CacheLifetimeTest, IsUnknownUntilSomethingWasFoundGone) {
  CacheLifetime lifetime;
  lifetime.Held();
  EXPECT_TRUE(std::isinf(lifetime.seconds()));
  lifetime.Gone(20);
  EXPECT_DOUBLE_EQ(lifetime.seconds(), 20);
}

TEST(CacheLifetimeTest, IsCutByWhatWentSoonerAndNotByWhatWentLater) {
  CacheLifetime lifetime;
  lifetime.Gone(20);
  lifetime.Gone(300);
  EXPECT_DOUBLE_EQ(lifetime.seconds(), 20);
  lifetime.Gone(5);
  EXPECT_DOUBLE_EQ(lifetime.seconds(), 16);
}

TEST(CacheLifetimeTest, AHundredTimelyRefreshesMakeUpForOneThatCameLate) {
  CacheLifetime lifetime;
  lifetime.Gone(20);
  lifetime.Gone(10);
  for (int i = 0; i < 112; ++i) lifetime.Held();
  EXPECT_NEAR(lifetime.seconds(), 20, 0.1);
}

class RefreshDueTest : public testing::Test {
 protected:
  // Prefill: 1,000 tokens/s. What is cached lives 20 s.
  RefreshDueTest() : worker_(TestWorker(0, 1'000'000, 1'000), {}, {}, nullptr) {}
  bool Due(double idle_s, uint32_t refreshes = 0) const {
    return RefreshDue({.tokens = 6'400, .idle_s = idle_s, .refreshes = refreshes}, worker_, 20,
                      At(0));
  }
  WorkerState worker_;
};

TEST_F(RefreshDueTest, BetweenHalfOfTheLifetimeAndItsEnd) {
  EXPECT_FALSE(Due(9.9));
  EXPECT_TRUE(Due(10));
  EXPECT_TRUE(Due(19.9));
  EXPECT_FALSE(Due(20)) << "gone: computing it anew is for a request that wants it";
}

// 64 tokens of 6,400: a hundredth of the prefix's prefill each.
TEST_F(RefreshDueTest, UntilTheRefreshesHaveCostWhatThePrefixDoes) {
  EXPECT_TRUE(Due(10, 99));
  EXPECT_FALSE(Due(10, 100));
}

TEST_F(RefreshDueTest, NeverWhereNothingHasToGo) {
  EXPECT_FALSE(RefreshDue({.tokens = 6'400, .idle_s = 3'600, .refreshes = 0}, worker_,
                          CacheLifetime().seconds(), At(3'600)));
}

// A worker of 20,000 tokens that is full of prompts that come once, the first of them older than
// the one prefix at home.
class KeepWarm : public testing::Test {
 protected:
  KeepWarm() {
    router_.PutWorker(TestWorker(0, 20'000), At(0));
    Pass(0, 1);
  }
  Decision Serve(const prompt::Identity& prompt, double at_s) {
    const Decision d = *router_.Route({.identity = prompt}, At(at_s));
    Answer(d, d.expected_cached, at_s);
    return d;
  }
  void Answer(const Decision& d, uint32_t cached, double at_s) {
    router_.OnDispatch(d.ticket, At(at_s));
    router_.OnFirstByte(d.ticket, At(at_s + 0.1));
    router_.OnUsage(d.ticket,
                    {.prompt_tokens = d.prompt_tokens, .output_tokens = 1, .cached_tokens = cached},
                    At(at_s + 0.1));
    router_.OnDone(d.ticket, End::kComplete, At(at_s + 0.1));
  }
  // 640 new tokens each second.
  void Pass(double from_s, double until_s) {
    for (double at = from_s; at < until_s; at += 1) {
      Serve(TenantPrompt(2, 6'400, Mix64(static_cast<uint64_t>(at * 10)), 640), at);
    }
  }
  prompt::Identity Static() const { return MakePrompt({{1'000'000, 6'400}}); }
  Router router_;
};

TEST_F(KeepWarm, APrefixIsDueBeforeTheCacheForgetsItAndOnce) {
  Serve(TenantPrompt(1, 6'400, 1, 64), 1);
  Pass(2, 8);
  EXPECT_THAT(router_.TakeRefreshes(At(8)), IsEmpty()) << "there is room yet";
  Pass(8, 12);
  const auto due = router_.TakeRefreshes(At(12));
  ASSERT_THAT(due, SizeIs(1));
  EXPECT_EQ(due[0].k1, Static().k1());
  EXPECT_THAT(router_.TakeRefreshes(At(13)), IsEmpty());
}

TEST_F(KeepWarm, ARefreshMakesItRecentAndIsNoLoad) {
  Serve(TenantPrompt(1, 6'400, 1, 64), 1);
  Pass(2, 12);
  const auto due = router_.TakeRefreshes(At(12));
  ASSERT_THAT(due, SizeIs(1));
  const Decision refresh = *router_.RouteRefresh(Static(), due[0].worker, At(12));
  EXPECT_EQ(refresh.rule, Rule::kRefresh);
  EXPECT_EQ(refresh.expected_cached, 6'400u);
  Answer(refresh, 6'336, 12);
  Pass(13, 20);
  EXPECT_GE(router_.Explain({.identity = TenantPrompt(1, 6'400, 2, 64)}, At(20))->expected_cached,
            6'400u);
}

TEST_F(KeepWarm, WhatAnEngineForgotTeachesHowLongItKeeps) {
  Router router;  // which believes that all fits
  router.PutWorker(TestWorker(0, 1'000'000), At(0));
  const auto serve = [&](uint64_t tenant, uint32_t cached, double at_s) {
    const Decision d = *router.Route({.identity = TenantPrompt(tenant, 6'400, 1, 64)}, At(at_s));
    router.OnFirstByte(d.ticket, At(at_s));
    router.OnUsage(d.ticket, {.prompt_tokens = 6'464, .output_tokens = 9, .cached_tokens = cached},
                   At(at_s));
    router.OnDone(d.ticket, End::kComplete, At(at_s));
  };
  serve(1, 0, 0);
  serve(2, 0, 1);
  EXPECT_THAT(router.TakeRefreshes(At(100)), IsEmpty());
  serve(1, 0, 20);  // it was there, and isn't: unused for 20 s
  EXPECT_THAT(router.TakeRefreshes(At(26)), IsEmpty());
  const auto due = router.TakeRefreshes(At(33));
  ASSERT_THAT(due, SizeIs(1)) << "the other one's time is over";
  EXPECT_EQ(due[0].k1, Static().k1());
}

// Their next turn brings the prefix, and what would be evicted for it is others' history.
TEST_F(KeepWarm, PrefixesOfConversationsAreLeftToTheirTurns) {
  for (uint64_t talk = 1; talk <= 16; ++talk) {
    Serve(MakePrompt({{1'000'000, 6'400}, {talk, 64}, {talk, 64}}), 1);
  }
  Pass(2, 12);
  EXPECT_THAT(router_.TakeRefreshes(At(12)), IsEmpty());
}

TEST_F(KeepWarm, AWorkerWhereARefreshCameTooLateIsLeftAloneForAWhile) {
  Serve(TenantPrompt(1, 6'400, 1, 64), 1);
  Pass(2, 12);
  ASSERT_THAT(router_.TakeRefreshes(At(12)), SizeIs(1));
  Answer(*router_.RouteRefresh(Static(), WorkerId(0), At(12)), 0, 12);
  Pass(13, 22);
  EXPECT_THAT(router_.TakeRefreshes(At(22)), IsEmpty());
  EXPECT_THAT(router_.TakeRefreshes(At(22.2)), SizeIs(1));
}

TEST_F(KeepWarm, AWorkerThatIsOutOrGoneGetsNone) {
  Serve(TenantPrompt(1, 6'400, 1, 64), 1);
  EXPECT_EQ(router_.RouteRefresh(Static(), WorkerId(7), At(1)).error().code, Code::kUnavailable);
  router_.DrainWorker(WorkerId(0), true, At(1));
  EXPECT_EQ(router_.RouteRefresh(Static(), WorkerId(0), At(1)).error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace hidane::routing
