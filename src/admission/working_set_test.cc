#include "admission/working_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace hidane::admission {
namespace {

using Kind = Verdict::Kind;

TimePoint At(double s) {
  return FromSeconds(s);
}

/// Room for `tokens` exactly, newcomers included, and no rotation.
Params Exact() {
  return {.fill = 1, .entry_fill = 1, .quantum_turns = 0};
}

struct Pool : WorkingSet {
  explicit Pool(uint64_t tokens, const Params& params = Exact()) : WorkingSet(params) {
    SetCapacity(tokens, At(0));
  }
};

Turn Of(uint64_t conversation, uint32_t own, uint32_t tenant = 1) {
  return {.conversation = conversation, .own_tokens = own, .tenant = tenant};
}

TEST(WorkingSetTest, WhileEverythingFitsNobodyWaits) {
  Pool set(100);
  for (uint64_t c = 1; c <= 10; ++c) {
    EXPECT_EQ(set.Arrive(Of(c, 10), At(0)).kind, Kind::kGo);
  }
  EXPECT_EQ(set.tokens(), 100u);
  EXPECT_EQ(set.inside(), 10u);
}

TEST(WorkingSetTest, WithoutAKnownCapacityAllGo) {
  WorkingSet set(Exact());
  EXPECT_EQ(set.Arrive(Of(1, 1u << 31), At(0)).kind, Kind::kGo);
  EXPECT_EQ(set.Arrive(Of(2, 1u << 31), At(0)).kind, Kind::kGo);
}

TEST(WorkingSetTest, ANewcomerWaitsUntilAConversationEnds) {
  Pool set(100);
  const Ticket first = set.Arrive(Of(1, 60), At(0)).ticket;
  const Verdict second = set.Arrive(Of(2, 60), At(1));
  EXPECT_EQ(second.kind, Kind::kWait);
  EXPECT_EQ(second.position, 0u);
  set.Done(first, 70, At(2));
  EXPECT_TRUE(set.TakeLetIn().empty()) << "its next turn is expected";
  EXPECT_EQ(set.Arrive(Of(1, 80), At(3)).kind, Kind::kGo) << "inside goes at once";
  set.End(1, At(4));
  EXPECT_TRUE(set.TakeLetIn().empty()) << "its turn is under way";
  set.Cancel(set.Arrive(Of(1, 80), At(4)).ticket, At(5));
  EXPECT_FALSE(set.Inside(2)) << "a further turn takes the end back";
}

TEST(WorkingSetTest, AnEndedConversationLeavesWhenItsTurnIsDone) {
  Pool set(100);
  const Ticket first = set.Arrive(Of(1, 60), At(0)).ticket;
  const Ticket second = set.Arrive(Of(2, 60), At(1)).ticket;
  set.End(1, At(2));
  EXPECT_TRUE(set.Inside(1));
  set.Done(first, 60, At(3));
  EXPECT_FALSE(set.Inside(1));
  EXPECT_EQ(set.TakeLetIn(), std::vector{second});
  EXPECT_EQ(set.tokens(), 60u);
}

TEST(WorkingSetTest, ItTellsWhoGaveAPlaceUp) {
  Pool set(100);
  set.Done(set.Arrive(Of(1, 60), At(0)).ticket, 60, At(0));
  set.Done(set.Arrive(Of(0, 10), At(0)).ticket, 10, At(0));
  EXPECT_TRUE(set.TakeLeft().empty()) << "a single request is nobody";
  set.End(1, At(1));
  EXPECT_EQ(set.TakeLeft(), std::vector<uint64_t>{1});
  EXPECT_TRUE(set.TakeLeft().empty());
}

TEST(WorkingSetTest, ASharedPrefixIsCountedOnceWhileItIsUsed) {
  Pool set(1000);
  const auto turn = [](uint64_t conversation) {
    return Turn{.conversation = conversation, .prefix = 7, .prefix_tokens = 100, .own_tokens = 10};
  };
  set.Done(set.Arrive(turn(1), At(0)).ticket, 10, At(0));
  set.Done(set.Arrive(turn(2), At(0)).ticket, 20, At(0));
  EXPECT_EQ(set.tokens(), 130u);
  set.End(1, At(1));
  EXPECT_EQ(set.tokens(), 120u);
  set.End(2, At(1));
  EXPECT_EQ(set.tokens(), 0u);
}

TEST(WorkingSetTest, ASingleRequestIsInsideForItsTurnAlone) {
  Pool set(100);
  const Ticket one = set.Arrive(Of(0, 60), At(0)).ticket;
  const Verdict two = set.Arrive(Of(0, 60), At(0));
  EXPECT_EQ(two.kind, Kind::kWait);
  set.Done(one, 60, At(1));
  EXPECT_EQ(set.TakeLetIn(), std::vector{two.ticket});
}

TEST(WorkingSetTest, AConversationThatIdlesPastItsUsualGapLeaves) {
  Params params = Exact();
  params.idle.first = At(20);
  Pool set(100, params);
  set.Done(set.Arrive(Of(1, 60), At(0)).ticket, 60, At(1));
  const Ticket second = set.Arrive(Of(2, 60), At(2)).ticket;
  set.Tick(At(30));
  EXPECT_TRUE(set.TakeLetIn().empty()) << "1.5 x 20 s are not over";
  set.Tick(At(31));
  EXPECT_EQ(set.TakeLetIn(), std::vector{second});
  EXPECT_EQ(set.Arrive(Of(1, 60), At(32)).kind, Kind::kWait) << "a returning one lines up";
}

TEST(WorkingSetTest, TheUsualGapIsLearnedByConversation) {
  Pool set(100);
  double t = 0;
  for (int turn = 0; turn < 40; ++turn, t += 2) {
    set.Done(set.Arrive(Of(1, 10), At(t)).ticket, 10, At(t + 1));  // gaps of 1 s
  }
  for (int turn = 0; turn < 3; ++turn, t += 101) {
    set.Done(set.Arrive(Of(2, 10), At(t)).ticket, 10, At(t + 1));  // of 100 s
    set.Arrive(Of(1, 10), At(t));
  }
  EXPECT_TRUE(set.Inside(2));
  set.Tick(At(t + 45));
  EXPECT_TRUE(set.Inside(2));
  set.Tick(At(t + 60));
  EXPECT_FALSE(set.Inside(2));
}

TEST(WorkingSetTest, APlaceIsYieldedAfterItsQuantumOnlyIfSomebodyWaits) {
  Params params = Exact();
  params.quantum_turns = 2;
  Pool set(100, params);
  for (int turn = 0; turn < 4; ++turn) {
    set.Done(set.Arrive(Of(1, 60), At(turn)).ticket, 60, At(turn));
  }
  EXPECT_TRUE(set.Inside(1)) << "nobody waits";
  const Ticket second = set.Arrive(Of(2, 60), At(9)).ticket;
  EXPECT_TRUE(set.Inside(1)) << "a place is yielded at a turn's end";
  set.Done(set.Arrive(Of(1, 60), At(10)).ticket, 60, At(11));
  EXPECT_EQ(set.TakeLetIn(), std::vector{second});
  const Verdict back = set.Arrive(Of(1, 60), At(12));
  EXPECT_EQ(back.kind, Kind::kWait);
  set.Done(second, 60, At(13));
  EXPECT_TRUE(set.Inside(2)) << "its quantum is not over";
  set.Done(set.Arrive(Of(2, 60), At(14)).ticket, 60, At(15));
  EXPECT_EQ(set.TakeLetIn(), std::vector{back.ticket});
}

TEST(WorkingSetTest, TheMoreUrgentClassGoesFirst) {
  Pool set(100);
  const Ticket first = set.Arrive(Of(1, 100), At(0)).ticket;
  Turn batch = Of(2, 100, 2);
  batch.cls = Class::kBatch;
  Turn interactive = Of(3, 100, 3);
  interactive.cls = Class::kInteractive;
  const Ticket slow = set.Arrive(batch, At(1)).ticket;
  const Ticket fast = set.Arrive(interactive, At(2)).ticket;
  EXPECT_EQ(set.Waiting(slow, At(3)).position, 1u);
  set.End(1, At(3));
  set.Done(first, 100, At(4));
  EXPECT_EQ(set.TakeLetIn(), std::vector{fast});
}

TEST(WorkingSetTest, BatchWorkYieldsToOthersLastInFirst) {
  Pool set(100);
  for (uint64_t c = 1; c <= 3; ++c) {
    Turn batch = Of(c, 30);
    batch.cls = Class::kBatch;
    const Ticket ticket = set.Arrive(batch, At(0)).ticket;
    if (c != 2) set.Done(ticket, 30, At(1));
  }
  EXPECT_EQ(set.Arrive(Of(4, 30), At(2)).kind, Kind::kGo);
  EXPECT_TRUE(set.Inside(1));
  EXPECT_FALSE(set.Inside(3));
}

TEST(WorkingSetTest, WhoIsLargerThanThePoolIsLetInAlone) {
  Pool set(100);
  const Ticket small = set.Arrive(Of(1, 50), At(0)).ticket;
  const Ticket large = set.Arrive(Of(2, 500), At(1)).ticket;
  const Verdict behind = set.Arrive(Of(3, 10), At(2));
  EXPECT_EQ(behind.kind, Kind::kWait) << "nobody overtakes the first in line";
  set.End(1, At(3));
  set.Done(small, 50, At(3));
  EXPECT_EQ(set.TakeLetIn(), std::vector{large});
  EXPECT_EQ(set.inside(), 1u);
  set.End(2, At(4));
  set.Done(large, 500, At(5));
  EXPECT_EQ(set.TakeLetIn(), std::vector{behind.ticket});
}

TEST(WorkingSetTest, GrowthOverTheLimitCostsTheLastInItsPlaceButNotItsTurn) {
  Pool set(100);
  const Ticket first = set.Arrive(Of(1, 40), At(0)).ticket;
  const Ticket second = set.Arrive(Of(2, 40), At(1)).ticket;
  set.Done(first, 70, At(2));
  EXPECT_EQ(set.tokens(), 110u);
  EXPECT_TRUE(set.Inside(2)) << "its turn is under way";
  set.Done(second, 40, At(3));
  EXPECT_FALSE(set.Inside(2));
  EXPECT_TRUE(set.Inside(1));
  EXPECT_EQ(set.Arrive(Of(1, 300), At(4)).kind, Kind::kGo) << "alone it may outgrow the pool";
}

TEST(WorkingSetTest, NewcomersLeaveRoomForTheGrowthOfThoseInside) {
  Pool set(1000, {});
  const Ticket first = set.Arrive(Of(1, 700), At(0)).ticket;
  EXPECT_EQ(set.Arrive(Of(2, 190), At(0)).kind, Kind::kWait) << "over 0.88";
  EXPECT_EQ(set.Arrive(Of(1, 920), At(0)).kind, Kind::kGo);
  set.Done(first, 925, At(1));
  EXPECT_TRUE(set.Inside(1)) << "up to 0.93";
}

TEST(WorkingSetTest, TheCapacityMayChange) {
  Pool set(100);
  set.Done(set.Arrive(Of(1, 60), At(0)).ticket, 60, At(0));
  const Ticket second = set.Arrive(Of(2, 60), At(1)).ticket;
  set.SetCapacity(200, At(2));
  EXPECT_EQ(set.TakeLetIn(), std::vector{second});
  set.Done(second, 60, At(3));
  set.SetCapacity(100, At(4));
  EXPECT_TRUE(set.Inside(1));
  EXPECT_FALSE(set.Inside(2)) << "last in, first out";
}

TEST(WorkingSetTest, TurnsOfAWaitingConversationAreLetInTogether) {
  Pool set(100);
  const Ticket first = set.Arrive(Of(1, 100), At(0)).ticket;
  const Ticket a = set.Arrive(Of(2, 50), At(1)).ticket;
  const Ticket b = set.Arrive(Of(2, 60), At(2)).ticket;
  EXPECT_EQ(set.waiting(), 1u);
  set.End(1, At(3));
  set.Done(first, 100, At(3));
  EXPECT_EQ(set.TakeLetIn(), (std::vector{a, b}));
  EXPECT_EQ(set.tokens(), 60u);
}

TEST(WorkingSetTest, AClientThatLeavesTheLineMakesRoomForTheNext) {
  Pool set(100);
  set.Done(set.Arrive(Of(1, 60), At(0)).ticket, 60, At(0));
  const Ticket large = set.Arrive(Of(2, 90), At(1)).ticket;
  const Ticket small = set.Arrive(Of(3, 30), At(2)).ticket;
  set.Cancel(large, At(3));
  EXPECT_EQ(set.TakeLetIn(), std::vector{small});
  set.Cancel(large, At(4));
  set.Done(large, 1, At(4));
  EXPECT_EQ(set.tokens(), 90u) << "a closed ticket is ignored";
}

TEST(WorkingSetTest, TheLineIsBounded) {
  Params params = Exact();
  params.max_waiting = 2;
  Pool set(100, params);
  set.Arrive(Of(1, 100), At(0));
  EXPECT_EQ(set.Arrive(Of(2, 100), At(0)).kind, Kind::kWait);
  EXPECT_EQ(set.Arrive(Of(2, 100), At(0)).kind, Kind::kWait);
  EXPECT_EQ(set.Arrive(Of(2, 100), At(0)).kind, Kind::kRefuse);
  EXPECT_EQ(set.Arrive(Of(3, 100), At(0)).kind, Kind::kRefuse);
  EXPECT_EQ(set.waiting(), 1u);
}

TEST(WorkingSetTest, ATurnThatCannotWaitThatLongIsRefusedAtOnceAndToldWhenToComeBack) {
  Pool set(100);
  Ticket inside = set.Arrive(Of(1, 100), At(0)).ticket;
  for (uint64_t c = 2; c <= 6; ++c) {  // a place is given every 10 s
    const Ticket next = set.Arrive(Of(c, 100), At(10.0 * (c - 2))).ticket;
    set.End(c - 1, At(10.0 * (c - 1)));
    set.Done(inside, 100, At(10.0 * (c - 1)));
    EXPECT_EQ(set.TakeLetIn(), std::vector{next});
    inside = next;
  }
  set.Arrive(Of(7, 100), At(50));
  Turn hurried = Of(8, 100);
  hurried.patience = At(15);
  const Verdict refused = set.Arrive(hurried, At(50));
  EXPECT_EQ(refused.kind, Kind::kRefuse);
  EXPECT_NEAR(Seconds(refused.expected_wait), 20, 0.1);
  EXPECT_EQ(set.waiting(), 1u);
  hurried.patience = At(25);
  EXPECT_EQ(set.Arrive(hurried, At(50)).kind, Kind::kWait);
}

}  // namespace
}  // namespace hidane::admission
