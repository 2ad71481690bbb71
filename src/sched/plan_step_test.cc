#include "sched/plan_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <algorithm>
#include <set>

namespace hidane::sched {

bool operator==(const StepPlan::Item& a, const StepPlan::Item& b) {
  return a.id == b.id && a.n_tokens == b.n_tokens;
}

namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Item = StepPlan::Item;

SeqId S(uint64_t id) {
  return SeqId(id);
}
RunningSeq Decode(uint64_t id) {
  return {.id = S(id)};
}
RunningSeq Prefill(uint64_t id, uint32_t left) {
  return {.id = S(id), .tokens_left = left};
}
StepPlan Plan(std::span<const RunningSeq> running, std::span<const WaitingSeq> waiting,
              const StepBudget& budget) {
  size_t next = 0;
  return PlanStep(
      running,
      [&]() -> std::optional<WaitingSeq> {
        if (next == waiting.size()) return std::nullopt;
        return waiting[next++];
      },
      budget);
}
constexpr StepBudget kRoomy{.tokens_max = 100, .seqs_max = 16, .blocks_free = 1000};

TEST(PlanStepTest, DecodesGoFirstThenPrefillsInArrivalOrderUntilTheBudgetIsSpent) {
  const RunningSeq running[] = {Prefill(1, 70), Decode(2), Prefill(3, 70), Decode(4)};
  const StepPlan plan = Plan(running, {}, kRoomy);
  EXPECT_THAT(plan.run, ElementsAre(Item{S(2), 1}, Item{S(4), 1}, Item{S(1), 70}, Item{S(3), 28}));
}

TEST(PlanStepTest, AWaitingSequenceComesInWhenItsBlocksAndOnePerRunningAreFree) {
  const RunningSeq running[] = {Decode(1)};
  const WaitingSeq waiting[] = {{.id = S(2), .tokens_left = 50, .blocks_wanted = 4}};
  EXPECT_THAT(Plan(running, waiting, {100, 16, 4}).admit, IsEmpty());
  EXPECT_THAT(Plan(running, waiting, {100, 16, 5}).admit, ElementsAre(S(2)));
}

TEST(PlanStepTest, NoBlockIsKeptFreeForWhoeverGrowsNoMore) {
  const RunningSeq running[] = {
      {.id = S(1), .grows = false}, {.id = S(2)}, {.id = S(3), .grows = false}};
  const WaitingSeq waiting[] = {{.id = S(4), .blocks_wanted = 4}, {.id = S(5), .blocks_wanted = 1}};
  EXPECT_THAT(Plan(running, waiting, {100, 16, 4}).admit, IsEmpty());
  EXPECT_THAT(Plan(running, waiting, {100, 16, 6}).admit, ElementsAre(S(4)));
  EXPECT_THAT(Plan(running, waiting, {100, 16, 7}).admit, ElementsAre(S(4), S(5)));
}

TEST(PlanStepTest, TheOldestThatDoesNotFitHoldsBackTheOnesBehindIt) {
  const WaitingSeq waiting[] = {{.id = S(1), .tokens_left = 90, .blocks_wanted = 9},
                                {.id = S(2), .tokens_left = 1, .blocks_wanted = 1}};
  EXPECT_THAT(Plan({}, waiting, {100, 16, 8}).admit, IsEmpty());
}

TEST(PlanStepTest, WhoeverNeedsABlockThatIsBeingComputedIsPassedOver) {
  const Sha256Digest shared{1}, other{2};
  const RunningSeq running[] = {{.id = S(1), .tokens_left = 9, .computes = &other}};
  const WaitingSeq waiting[] = {
      {.id = S(2), .computes = &shared, .waits_for_it = true},
      {.id = S(3), .computes = &shared, .waits_for_it = true},  // 2 computes it in this very step
      {.id = S(4), .computes = &other, .waits_for_it = true},
      {.id = S(5)},
  };
  EXPECT_THAT(Plan(running, waiting, kRoomy).admit, ElementsAre(S(2), S(5)));
}

// Its last block is computed for the logits whoever else does: waiting would win nothing.
TEST(PlanStepTest, ABlockThatCanNotBecomeAHitIsNotWaitedFor) {
  const Sha256Digest last{1};
  const WaitingSeq waiting[] = {{.id = S(1), .computes = &last}, {.id = S(2), .computes = &last}};
  EXPECT_THAT(Plan({}, waiting, kRoomy).admit, ElementsAre(S(1), S(2)));
}

TEST(PlanStepTest, LooksNoFurtherThanItCanAdmit) {
  const auto fails = []() -> std::optional<WaitingSeq> {
    ADD_FAILURE() << "a look";
    return std::nullopt;
  };
  const RunningSeq running[] = {Prefill(1, 70), Decode(2)};
  PlanStep(running, fails, {.tokens_max = 71, .seqs_max = 16, .blocks_free = 9});
  PlanStep(running, fails, {.tokens_max = 100, .seqs_max = 2, .blocks_free = 9});
}

TEST(PlanStepTest, TheYoungestGivesWayWhenARunningSequenceCanNotGrow) {
  const RunningSeq running[] = {{.id = S(1), .blocks_wanted = 1},
                                {.id = S(2), .blocks_wanted = 1},
                                {.id = S(3), .blocks_given = 1}};
  const WaitingSeq waiting[] = {{.id = S(4)}};
  const StepPlan plan = Plan(running, waiting, {100, 16, 1});
  EXPECT_THAT(plan.preempt, ElementsAre(S(3)));
  EXPECT_THAT(plan.run, ElementsAre(Item{S(1), 1}, Item{S(2), 1}));
  EXPECT_THAT(plan.admit, IsEmpty());
}

TEST(PlanStepTest, TheYoungestMayHaveToGiveWayItself) {
  const RunningSeq running[] = {{.id = S(1)}, {.id = S(2), .blocks_wanted = 1, .blocks_given = 5}};
  const StepPlan plan = Plan(running, {}, {100, 16, 0});
  EXPECT_THAT(plan.preempt, ElementsAre(S(2)));
  EXPECT_THAT(plan.run, ElementsAre(Item{S(1), 1}));
}

TEST(PlanStepTest, TheOldestRunsWhateverTheCountSays) {
  const RunningSeq running[] = {{.id = S(1), .blocks_wanted = 1}, {.id = S(2)}};
  const StepPlan plan = Plan(running, {}, {100, 16, 0});
  EXPECT_THAT(plan.preempt, ElementsAre(S(2)));
  EXPECT_THAT(plan.run, ElementsAre(Item{S(1), 1}));
}

std::vector<RunningSeq> AnyRunning(const std::vector<Sha256Digest>& digests) {
  const auto raw = *rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange(0u, 1u << 12));
  std::vector<RunningSeq> all;
  for (const uint32_t r : raw) {
    all.push_back({.id = S(all.size()),
                   .tokens_left = r % 2 == 0 ? 1 : 1 + r / 64,
                   .blocks_wanted = r / 2 % 2,
                   .blocks_given = r / 4 % 4,
                   .computes = r % 16 == 1 ? &digests[r / 16 % digests.size()] : nullptr});
  }
  return all;
}

std::vector<WaitingSeq> AnyWaiting(const std::vector<Sha256Digest>& digests) {
  const auto raw = *rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange(0u, 1u << 12));
  std::vector<WaitingSeq> all;
  for (const uint32_t r : raw) {
    all.push_back({.id = S(1000 + all.size()),
                   .tokens_left = 1 + r / 64,
                   .blocks_wanted = 1 + r / 512,
                   .computes = r % 4 == 0 ? nullptr : &digests[r / 4 % digests.size()],
                   .waits_for_it = r % 4 > 1});
  }
  return all;
}

RC_GTEST_PROP(PlanStepProps, KeepsItsBudgetsAndServesTheOldest, ()) {
  const std::vector<Sha256Digest> digests = {{1}, {2}, {3}};
  const auto running = AnyRunning(digests);
  const auto waiting = AnyWaiting(digests);
  StepBudget budget{.tokens_max = *rc::gen::inRange(1u, 200u), .seqs_max = 0, .blocks_free = 0};
  budget.seqs_max = *rc::gen::inRange(1u, budget.tokens_max + 1);
  budget.blocks_free = *rc::gen::inRange(0u, 30u);
  const StepPlan plan = Plan(running, waiting, budget);

  std::set<SeqId> seen;
  uint64_t tokens = 0;
  for (const Item& item : plan.run) {
    RC_ASSERT(item.n_tokens >= 1u);
    RC_ASSERT(seen.insert(item.id).second);
    tokens += item.n_tokens;
  }
  RC_ASSERT(tokens <= budget.tokens_max);
  for (const SeqId id : plan.preempt) RC_ASSERT(seen.insert(id).second);
  for (const SeqId id : plan.admit) RC_ASSERT(seen.contains(id));
  if (!plan.admit.empty()) {
    RC_ASSERT(plan.preempt.empty());
    RC_ASSERT(running.size() + plan.admit.size() <= budget.seqs_max);
  }

  StepBudget roomy = budget;
  roomy.blocks_free = 1u << 30;
  const StepPlan more = Plan(running, waiting, roomy);
  RC_ASSERT(!more.lacks_blocks);
  const bool same = more.preempt == plan.preempt && more.admit == plan.admit;
  RC_ASSERT(same == !plan.lacks_blocks || (same && running.size() == 1));

  uint64_t blocks = 0;
  for (const RunningSeq& seq : running) blocks += seq.blocks_wanted;
  for (const WaitingSeq& seq : waiting) {
    if (std::count(plan.admit.begin(), plan.admit.end(), seq.id)) blocks += seq.blocks_wanted;
  }
  if (plan.preempt.empty() && running.size() != 1) RC_ASSERT(blocks <= budget.blocks_free);
  if (running.empty()) return;
  RC_ASSERT(std::find(plan.preempt.begin(), plan.preempt.end(), S(0)) == plan.preempt.end());
  if (running.size() <= budget.tokens_max) RC_ASSERT(seen.contains(S(0)));
}

}  // namespace
}  // namespace hidane::sched
