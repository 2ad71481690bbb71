#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include <vector>

#include "sched/scheduler_world.h"

namespace hidane::sched {
namespace {

std::vector<TokenId> Tokens(size_t n, TokenId first = 0) {
  std::vector<TokenId> tokens(n);
  for (size_t i = 0; i < n; ++i) tokens[i] = first + static_cast<TokenId>(i);
  return tokens;
}

TEST(SchedulerTest, AForkSharesAllButTheBlockThatIsWritten) {
  Scheduler s(kWorldOptions);
  const auto run = [&] {
    const StepPlan plan = s.Plan();
    s.Commit(plan);
    s.Complete(plan);
  };
  s.Add(SeqId(1), 10, {});
  run();
  const std::vector<uint32_t> written = {2};
  for (const uint64_t id : {2u, 3u, 4u}) {
    const auto copies = s.Fork(SeqId(1), SeqId(id), written);
    ASSERT_TRUE(copies);
    ASSERT_EQ(copies->size(), 1u);
    EXPECT_EQ(copies->at(0).from, s.state(SeqId(1)).table[2]);
    EXPECT_EQ(copies->at(0).to, s.state(SeqId(id)).table[2]);
    EXPECT_EQ(s.state(SeqId(id)).table[1], s.state(SeqId(1)).table[1]);
  }
  EXPECT_EQ(s.cache().blocks_free(), 12u - 6u);
  EXPECT_FALSE(s.Fork(SeqId(1), SeqId(5), written)) << "four sequences run at once";
  EXPECT_EQ(s.waiting(), 1u);
  for (const uint64_t id : {1u, 2u, 3u, 4u, 5u}) s.Append(SeqId(id));
  run();
  EXPECT_EQ(s.state(SeqId(4)).computed, 11u);
  for (const uint64_t id : {1u, 2u, 3u, 4u}) s.Remove(SeqId(id));
  run();
  EXPECT_EQ(s.state(SeqId(5)).computed, 10u) << "computed again, a step's budget of it";
  s.Remove(SeqId(5));
  EXPECT_EQ(s.cache().blocks_free(), 12u);
}

TEST(SchedulerTest, BlocksFollowTheActiveLengthAndHitsTheLogicalOne) {
  Scheduler s(kWorldOptions);
  BlockDigester digester;
  const auto prompt = Tokens(10);
  s.Add(SeqId(1), 10, digester.Chain(prompt, 4, ""), Evictable{});
  StepPlan plan = s.Plan();
  s.Commit(plan);
  s.Complete(plan);
  s.Append(SeqId(1));
  ASSERT_EQ(s.state(SeqId(1)).table.size(), 3u);
  ASSERT_EQ(s.cache().blocks_published(), 2u);

  // Six of ten go: the first block is filled anew, the others are given back.
  const std::vector<BlockId> table = s.state(SeqId(1)).table;
  ASSERT_TRUE(s.cache().Unpublish(table[0]));
  ASSERT_TRUE(s.cache().Release(table[1]));
  ASSERT_TRUE(s.cache().Release(table[2]));
  s.Evict(SeqId(1), std::span(table).first(1), 6);
  EXPECT_EQ(s.state(SeqId(1)).active(), 4u);
  EXPECT_EQ(s.cache().blocks_free(), 11u);

  // The next token opens a block, the four after it do not.
  for (uint32_t step = 0; step < 5; ++step) {
    plan = s.Plan();
    ASSERT_EQ(plan.run.size(), 1u);
    s.Commit(plan);
    EXPECT_EQ(s.state(SeqId(1)).table.size(), step < 4 ? 2u : 3u);
    s.Complete(plan);
    s.Append(SeqId(1));
  }
  EXPECT_EQ(s.state(SeqId(1)).computed, 15u);
  EXPECT_EQ(s.cache().blocks_published(), 1u);  // of the prompt; nothing that was generated

  // The prompt's first block is published no more, so its second is no hit alone.
  s.Add(SeqId(2), 10, digester.Chain(prompt, 4, ""));
  plan = s.Plan();
  s.Commit(plan);
  EXPECT_EQ(s.state(SeqId(2)).cached_tokens, 0u);
  s.Complete(plan);
}

TEST(SchedulerTest, WhoeverHoldsAllThatItComesToLeavesTheRestToOthers) {
  for (const uint32_t slots_max : {8u, 9u}) {
    Scheduler s(kWorldOptions);
    s.Add(SeqId(1), 10, {}, Evictable{});
    const StepPlan plan = s.Plan();
    s.Commit(plan);
    s.Complete(plan);
    s.Append(SeqId(1));
    const std::vector<BlockId> table = s.state(SeqId(1)).table;
    ASSERT_TRUE(s.cache().Release(table[2]));
    s.Evict(SeqId(1), std::span(table).first(2), 4, slots_max);
    s.Add(SeqId(2), 40, {});  // the ten blocks that are free
    EXPECT_EQ(s.Plan().admit.size(), slots_max == 8 ? 1u : 0u);
  }
}

TEST(SchedulerTest, AHitEndsWhereTheOwnerWantsToSeeMore) {
  World world(kWorldOptions);
  world.Add(Tokens(20), 0);
  world.Drain();
  world.AddEvictable(Tokens(20), 1, 11);
  world.Step();
  EXPECT_EQ(world.s.state(SeqId(2)).cached_tokens, 8u);
  world.Drain();
}

TEST(SchedulerTest, AHitNeverCoversTheLastPromptToken) {
  World world(kWorldOptions);
  world.Add(Tokens(8), 0);
  world.Drain();
  world.Add(Tokens(8), 0);
  world.Step();  // 4 tokens hit, 4 computed for the logits
  EXPECT_FALSE(world.live(2));
  world.Add(Tokens(9), 4);
  world.Step();
  EXPECT_EQ(world.s.state(SeqId(3)).cached_tokens, 8u);
}

TEST(SchedulerTest, TheSamePrefixIsComputedOnce) {
  World world(kWorldOptions);
  for (int i = 0; i < 3; ++i) world.Add(Tokens(17), 1);
  StepTally sum;
  while (!world.idle()) sum.prefill += world.Step().prefill;
  EXPECT_EQ(sum.prefill, 17u + 1 + 1);
}

// Each has to compute the last block itself, for its logits, so none gains by waiting.
TEST(SchedulerTest, CachedPromptsOfWholeBlocksRunTogether) {
  World world(kWorldOptions);
  world.Add(Tokens(8), 0);
  world.Drain();
  for (int i = 0; i < 2; ++i) world.Add(Tokens(8), 4);
  world.Step();
  EXPECT_EQ(world.s.running(), 2u);
}

TEST(SchedulerTest, WhoeverWaitedForAPrefixComputesItWhenItsOwnerIsCancelled) {
  World world(kWorldOptions);
  world.Add(Tokens(20), 1);
  world.Add(Tokens(20), 1);
  world.Step();
  EXPECT_EQ(world.s.running(), 1u);
  world.Remove(0);
  world.Step();
  EXPECT_EQ(world.s.state(SeqId(2)).cached_tokens, 8u);  // the full blocks of the first 10 tokens
  world.Drain();
}

TEST(SchedulerTest, ALongPromptIsNotOvertakenForEver) {
  World world(kWorldOptions);
  for (TokenId i = 0; i < 4; ++i) world.Add(Tokens(5, 100 * i), 4);
  world.Step();
  world.Add(Tokens(40, 900), 2);
  const uint64_t big = 5;
  uint32_t steps = 0;
  for (; world.live(big); ++steps) {
    ASSERT_LT(steps, 30u);
    world.Add(Tokens(5, 1000 + 10 * static_cast<TokenId>(steps)), 4);
    world.Step();
  }
}

TEST(SchedulerTest, CountsATokenAsRecomputedWhenItsBlockWasHeldBefore) {
  World world(kWorldOptions);
  world.Add(Tokens(20), 0);
  world.Drain();
  world.Add(Tokens(46, 500), 0);  // takes every block
  world.Drain();
  world.Add(Tokens(22), 0);  // five blocks again, then two new tokens
  StepTally sum;
  while (!world.idle()) {
    const StepTally tally = world.Step();
    sum.prefill += tally.prefill;
    sum.recomputed += tally.recomputed;
  }
  EXPECT_EQ(sum.prefill, 22u);
  EXPECT_EQ(sum.recomputed, 20u);
}

TEST(SchedulerTest, AResetForgetsWhatWasHeld) {
  World world(kWorldOptions);
  world.Add(Tokens(8), 0);
  world.Drain();
  world.Reset();
  world.Add(Tokens(8), 0);
  const StepTally tally = world.Step();
  EXPECT_EQ(tally.prefill, 8u);
  EXPECT_EQ(tally.recomputed, 0u);
}

TEST(SchedulerTest, PreemptionTakesTheYoungestAndItsTokensAreNotCountedAsDecodeAgain) {
  World world(kWorldOptions);
  world.Add(Tokens(12), 36);
  world.Add(Tokens(12, 500), 36);
  uint32_t decode = 0, preempted = 0;
  while (!world.idle()) {
    decode += world.Step().decode;
    if (world.live(2)) {
      preempted |= world.s.waiting();
      EXPECT_EQ(world.s.state(SeqId(2)).cached_tokens, 0u);  // its own blocks are no hit
    }
  }
  EXPECT_EQ(preempted, 1u);
  EXPECT_GT(decode, 0u);
  EXPECT_LE(decode, 2 * 36u);
}

}  // namespace
}  // namespace hidane::sched
