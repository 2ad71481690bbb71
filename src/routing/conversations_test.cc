#include "routing/conversations.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include "base/rng.h"
#include "routing/routing_test_util.h"

namespace hidane::routing {
namespace {

constexpr uint64_t kK1 = 77;

class Talks {
 public:
  explicit Talks(const Params& params = {})
      : accounts(params), log(0), talks(params, accounts, log) {
    for (uint32_t w = 0; w < 3; ++w) Join(w);
  }
  void Join(uint32_t w) {
    accounts.Put({.id = WorkerId(w), .key = w + 1, .capacity_tokens = 100'000});
    talks.OnJoined(w + 1);
  }
  void Serve(uint64_t k2, uint32_t w, uint32_t tokens, bool history, double at_s = 0) {
    talks.Serve({.k1 = kK1, .k2 = k2, .worker = w + 1, .tokens = tokens, .has_history = history},
                At(at_s));
  }
  uint64_t Held(uint32_t w) const { return accounts.Find(WorkerId(w))->conversations; }

  Accounts accounts;
  DeltaLog log;
  Conversations talks;
};

TEST(ConversationsTest, PromptsThatComeOnceAreInNoAccountAndTellNobody) {
  Talks t;
  for (uint64_t k2 = 1; k2 <= 1'000; ++k2) t.Serve(k2, 0, 500, false);
  EXPECT_EQ(t.Held(0), 0u);
  EXPECT_FALSE(t.talks.GoOn(kK1));
  EXPECT_EQ(t.talks.Find(1'000)->worker, 1u) << "where it was is remembered";
  EXPECT_TRUE(t.log.Take().empty());
}

TEST(ConversationsTest, ASnapshotTellsTheLatestLast) {
  Talks t;
  for (const uint64_t k2 : {1, 2, 3, 1}) t.Serve(k2, 0, 500, true);
  std::vector<Delta> told;
  t.talks.AppendSnapshot(told);
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told.front().key, 2u);
  EXPECT_EQ(told.back().key, 1u);
}

TEST(ConversationsTest, AConversationCountsFromItsFirstHistoryAndGrows) {
  Talks t;
  t.Serve(1, 0, 500, false);
  EXPECT_EQ(t.Held(0), 0u);
  t.Serve(1, 0, 1'500, true);
  EXPECT_EQ(t.Held(0), 1'500u);
  EXPECT_TRUE(t.talks.LiveAt(kK1, 1));
  t.Serve(1, 0, 4'000, true);
  EXPECT_EQ(t.Held(0), 4'000u);
  t.Serve(1, 2, 5'000, true);
  EXPECT_EQ(t.Held(0), 0u);
  EXPECT_EQ(t.Held(2), 5'000u);
  EXPECT_FALSE(t.talks.LiveAt(kK1, 1));
}

TEST(ConversationsTest, WhereTheyUsuallyGoOnTheFirstTurnCounts) {
  Talks t;
  for (uint32_t turn = 0; turn < 20; ++turn) t.Serve(1, 0, 1'000 * turn + 500, turn > 0);
  EXPECT_TRUE(t.talks.GoOn(kK1));
  EXPECT_TRUE(t.talks.GoOn(kK1 + 1)) << "a prefix that is new is taken for like the others";
  EXPECT_GT(t.talks.UsualTokens(kK1), 5'000u);
  t.Serve(2, 1, 500, false);
  EXPECT_EQ(t.Held(1), 500u);
}

TEST(ConversationsTest, TheyLeaveTheAccountWhenTheyIdleLongerThanTurnsUsuallyTake) {
  Talks t;
  double now = 0;
  for (uint32_t turn = 0; turn < 500; ++turn) t.Serve(1, 0, 1'000, true, now += 20);
  EXPECT_NEAR(t.talks.idle_s(), 40, 10);
  t.talks.Release(At(now + 25));
  EXPECT_EQ(t.Held(0), 1'000u);
  t.talks.Release(At(now + 60));
  EXPECT_EQ(t.Held(0), 0u);
  EXPECT_EQ(t.talks.Find(1)->worker, 1u) << "it may come back";
  t.Serve(1, 0, 1'200, true, now + 100);
  EXPECT_EQ(t.Held(0), 1'200u);
}

TEST(ConversationsTest, OneThatLeavesIsInNoAccountAndOthersHearOfIt) {
  Talks t, other;
  t.Serve(1, 0, 1'000, true);
  t.Serve(2, 0, 500, true);
  t.talks.Leave(1);
  t.talks.Leave(77);
  EXPECT_EQ(t.Held(0), 500u);
  EXPECT_EQ(t.talks.Find(1)->worker, 1u) << "it may come back";
  const auto deltas = t.log.Take();
  for (const Delta& delta : deltas) other.talks.Merge(delta, At(1));
  EXPECT_EQ(other.Held(0), 500u);
  EXPECT_EQ(other.talks.Find(1)->worker, 1u);
  for (const Delta& delta : deltas) other.talks.Merge(delta, At(2));
  EXPECT_EQ(other.Held(0), 500u) << "told twice, and in whichever order";
  t.Serve(1, 0, 1'200, true);
  EXPECT_EQ(t.Held(0), 1'700u);
}

TEST(ConversationsTest, EachTurnOfOneThatCountsIsTold) {
  Talks t, other;
  for (uint32_t turn = 0; turn < 5; ++turn) t.Serve(1, 0, 1'000 + 100 * turn, true);
  EXPECT_EQ(t.log.Take().size(), 5u);
}

TEST(ConversationsTest, AWorkerThatComesBackHoldsWhatIsStillThere) {
  Talks t;
  t.Serve(1, 0, 1'000, true);
  t.accounts.Remove(WorkerId(0));
  t.Serve(1, 1, 2'000, true);
  EXPECT_EQ(t.Held(1), 2'000u);
  t.Serve(2, 1, 300, true);
  t.accounts.Remove(WorkerId(1));
  t.Join(0);
  EXPECT_EQ(t.Held(0), 0u);
  t.Join(1);
  EXPECT_EQ(t.Held(1), 2'300u);
}

TEST(ConversationsTest, TheyAreBounded) {
  Talks t(Params{.conversations_max = 10});
  for (uint64_t k2 = 1; k2 <= 100; ++k2) t.Serve(k2, 0, 100, true);
  EXPECT_EQ(t.talks.size(), 10u);
  EXPECT_EQ(t.Held(0), 1'000u);
}

// Whatever happens, an account holds exactly the counted conversations that live there.
RC_GTEST_PROP(ConversationsProperty, AccountsAreTheSumOfTheirConversations, ()) {
  Rng rng(*rc::gen::arbitrary<uint64_t>());
  Talks t(Params{.conversations_max = 8});
  double now = 0;
  for (int i = 0; i < 300; ++i) {
    now += rng.Exponential(3);
    const uint64_t k2 = 1 + rng.Below(16);
    const auto w = static_cast<uint32_t>(rng.Below(3));
    const auto tokens = static_cast<uint32_t>(rng.Below(5'000));
    switch (rng.Below(8)) {
      case 0:
        t.talks.Release(At(now));
        break;
      case 1:
        t.talks.Merge({.key = k2,
                       .k1 = kK1,
                       .worker = 1 + rng.Below(4),
                       .stamp = {rng.Below(500), 3},
                       .tokens = tokens,
                       .kind = Delta::Kind::kConversation},
                      At(now));
        break;
      case 2:
        t.accounts.Remove(WorkerId(w));
        break;
      case 3:
        if (t.accounts.Find(WorkerId(w)) == nullptr) t.Join(w);
        break;
      default:
        t.Serve(k2, w, tokens, rng.Below(2) == 0, now);
    }
    uint64_t held[3] = {};
    for (uint64_t k = 1; k <= 16; ++k) {
      const Conversations::Talk* talk = t.talks.Find(k);
      if (talk != nullptr && talk->counted && talk->worker <= 3)
        held[talk->worker - 1] += talk->tokens;
    }
    for (uint32_t at = 0; at < 3; ++at) {
      if (t.accounts.Find(WorkerId(at)) != nullptr) RC_ASSERT(t.Held(at) == held[at]);
    }
  }
}

}  // namespace
}  // namespace hidane::routing
