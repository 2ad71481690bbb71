#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <algorithm>
#include <map>
#include <set>

#include "base/rng.h"

namespace hidane::sched {
namespace {

constexpr SchedulerOptions kOptions{
    .kv_blocks = 12, .block_size = 4, .tokens_max = 10, .seqs_max = 4};

std::vector<TokenId> Tokens(size_t n, TokenId first = 0) {
  std::vector<TokenId> tokens(n);
  for (size_t i = 0; i < n; ++i) tokens[i] = first + static_cast<TokenId>(i);
  return tokens;
}

// Runs a scheduler against memory in which each slot remembers the context that it was computed
// from, and against a map of what should be cached. Fails at the first wrong slot.
class World {
 public:
  explicit World(const SchedulerOptions& options, bool prefix_cache = true)
      : s(options),
        options_(options),
        prefix_cache_(prefix_cache),
        knows_cache_(prefix_cache),
        slots_(options.kv_blocks * options.block_size) {}

  Scheduler s;

  void Add(std::vector<TokenId> prompt, uint32_t generate, const std::string& salt = "") {
    const SeqId id(next_++);
    const auto chain = digester_.Chain(prompt, options_.block_size, salt);
    s.Add(id, static_cast<uint32_t>(prompt.size()), prefix_cache_ ? chain : decltype(chain){});
    const size_t goal = prompt.size() + generate;
    goals_[id] = {salt, std::move(prompt), goal};
  }

  void Remove(uint32_t nth) {
    if (goals_.empty()) return;
    const auto at = std::next(goals_.begin(), nth % goals_.size());
    RC_ASSERT(s.Remove(at->first));
    goals_.erase(at);
  }

  StepTally Step() {
    const StepPlan plan = s.Plan();
    CheckPlan(plan);
    std::map<SeqId, uint32_t> hits;  // blocks
    for (const SeqId id : plan.admit) hits[id] = CachedBlocks(id);
    std::map<SeqId, std::vector<BlockId>> tables;
    for (const auto& [id, _] : goals_) tables[id] = s.state(id).table;

    s.Commit(plan);
    for (const auto& [id, expected] : hits) {
      const uint32_t n = s.state(id).computed / options_.block_size;
      if (knows_cache_) RC_ASSERT(n == expected);
      tables[id] = {s.state(id).table.begin(), s.state(id).table.begin() + n};
    }
    for (const StepPlan::Item& item : plan.run) ForgetReused(item.id, tables[item.id].size());
    for (const StepPlan::Item& item : plan.run) Write(item);
    for (const StepPlan::Item& item : plan.run) CheckContext(item);
    const StepTally tally = s.Complete(plan);
    for (const StepPlan::Item& item : plan.run) Publish(item.id);
    for (const StepPlan::Item& item : plan.run) Generate(item.id);
    CheckBlocks();
    return tally;
  }

  // Steps until nothing is live; each step must get some work done.
  uint32_t Drain() {
    uint32_t steps = 0;
    for (; !goals_.empty(); ++steps) {
      RC_ASSERT(!s.Plan().empty());
      RC_ASSERT(steps < 10000u);
      Step();
    }
    return steps;
  }

  // From here on the map doesn't know what is cached: tables outlive the reset.
  void Reset() {
    s.ResetPrefixCache();
    knows_cache_ = false;
  }

  bool live(uint64_t id) const { return goals_.contains(SeqId(id)); }
  bool idle() const { return goals_.empty(); }

 private:
  struct Goal {
    std::string salt;
    std::vector<TokenId> tokens;
    size_t tokens_wanted;
  };

  uint64_t Context(SeqId id, size_t n) const {
    uint64_t h = Mix64(Xxh3(goals_.at(id).salt));
    for (size_t i = 0; i < n; ++i) h = Mix64(h ^ static_cast<uint64_t>(goals_.at(id).tokens[i]));
    return h;
  }
  size_t Slot(SeqId id, size_t i) const {
    const uint32_t b = options_.block_size;
    return s.state(id).table[i / b].value() * b + i % b;
  }

  void CheckPlan(const StepPlan& plan) const {
    uint64_t tokens = 0;
    for (const StepPlan::Item& item : plan.run) tokens += item.n_tokens;
    RC_ASSERT(tokens <= options_.tokens_max);
    RC_ASSERT(s.running() + plan.admit.size() - plan.preempt.size() <= options_.seqs_max);
    for (const auto& [id, _] : goals_) {  // the oldest running always gets on
      if (!s.state(id).running) continue;
      RC_ASSERT(std::any_of(plan.run.begin(), plan.run.end(),
                            [oldest = id](const auto& item) { return item.id == oldest; }));
      break;
    }
  }

  uint32_t CachedBlocks(SeqId id) const {
    const uint32_t b = options_.block_size;
    uint32_t n = 0;
    while ((n + 1) * b < s.state(id).tokens && cached_.contains(Context(id, (n + 1) * b))) ++n;
    return n;
  }

  void ForgetReused(SeqId id, size_t old_blocks) {
    const auto& table = s.state(id).table;
    for (size_t i = old_blocks; i < table.size(); ++i) {
      RC_ASSERT(*s.cache().RefCount(table[i]) == 1u);
      std::erase_if(cached_, [&](const auto& entry) { return entry.second == table[i]; });
    }
  }

  void Write(const StepPlan::Item& item) {
    const SeqState& seq = s.state(item.id);
    for (uint32_t i = seq.computed; i < seq.computed + item.n_tokens; ++i) {
      RC_ASSERT(*s.cache().RefCount(seq.table[i / options_.block_size]) == 1u);
      slots_[Slot(item.id, i)] = Context(item.id, i + 1);
    }
  }

  void CheckContext(const StepPlan::Item& item) const {
    for (uint32_t i = 0; i < s.state(item.id).computed + item.n_tokens; ++i) {
      RC_ASSERT(slots_[Slot(item.id, i)] == Context(item.id, i + 1));
    }
  }

  void Publish(SeqId id) {
    const uint32_t b = options_.block_size;
    for (uint32_t n = 0; (n + 1) * b <= s.state(id).computed; ++n) {
      const BlockId block = s.state(id).table[n];
      const auto at = cached_.try_emplace(Context(id, (n + 1) * b), block).first;
      if (knows_cache_) RC_ASSERT(at->second == block);
    }
  }

  void Generate(SeqId id) {
    Goal& goal = goals_.at(id);
    if (s.state(id).computed < goal.tokens.size()) return;
    if (goal.tokens.size() == goal.tokens_wanted) {
      RC_ASSERT(s.Remove(id));
      goals_.erase(id);
      return;
    }
    goal.tokens.push_back(static_cast<TokenId>(Context(id, goal.tokens.size()) % 2));
    const uint32_t b = options_.block_size;
    std::optional<Sha256Digest> filled;
    if (prefix_cache_ && goal.tokens.size() % b == 0) {
      filled = digester_.Next(s.state(id).chain, std::span(goal.tokens).last(b), goal.salt);
    }
    s.Append(id, filled);
    RC_ASSERT(s.state(id).tokens == goal.tokens.size());
  }

  void CheckBlocks() const {
    std::map<BlockId, uint32_t> refs;
    for (const auto& [id, _] : goals_) {
      const SeqState& seq = s.state(id);
      std::set<BlockId> mine;
      for (const BlockId block : seq.table) {
        ++refs[block];
        RC_ASSERT(mine.insert(block).second);
      }
      RC_ASSERT(seq.running != seq.table.empty());
    }
    for (uint32_t id = 0; id < options_.kv_blocks; ++id) {
      const auto at = refs.find(BlockId(id));
      RC_ASSERT(*s.cache().RefCount(BlockId(id)) == (at == refs.end() ? 0 : at->second));
    }
    RC_ASSERT(s.cache().blocks_free() + refs.size() == options_.kv_blocks);
  }

  SchedulerOptions options_;
  BlockDigester digester_;
  bool prefix_cache_;
  bool knows_cache_;
  std::vector<uint64_t> slots_;         // context hash each slot's K/V was computed from
  std::map<uint64_t, BlockId> cached_;  // context hash -> block that holds its last tokens
  std::map<SeqId, Goal> goals_;
  uint64_t next_ = 1;
};

// Prompts over two tokens and two salts, so that prefixes meet often.
std::vector<TokenId> AnyPrompt(Rng& rng) {
  std::vector<TokenId> prompt(1 + rng.Below(24), static_cast<TokenId>(rng.Below(2)));
  for (size_t i = rng.Below(24); i < prompt.size(); ++i) {
    prompt[i] = static_cast<TokenId>(rng.Below(2));
  }
  return prompt;
}

void Play(World& world, const std::vector<uint32_t>& ops) {
  for (const uint32_t op : ops) {
    Rng rng(op);
    switch (op % 8) {
      case 0:
      case 1: {
        auto prompt = AnyPrompt(rng);
        const auto generate = static_cast<uint32_t>(rng.Below(24));
        world.Add(std::move(prompt), generate, rng.Below(4) == 0 ? "salt" : "");
        break;
      }
      case 2:
        if (op % 3 == 0) world.Remove(op / 8);
        break;
      default:
        world.Step();
    }
  }
}

std::vector<uint32_t> AnyOps() {
  return *rc::gen::resize(300, rc::gen::container<std::vector<uint32_t>>(
                                   rc::gen::resize(100, rc::gen::inRange(0u, 1u << 20))));
}

RC_GTEST_PROP(SchedulerProps, EveryContextIsRightAndEveryBlockComesBack, ()) {
  World world(kOptions);
  Play(world, AnyOps());
  world.Drain();
  RC_ASSERT(world.s.cache().blocks_free() == kOptions.kv_blocks);
  RC_ASSERT(world.s.running() + world.s.waiting() == 0u);
}

RC_GTEST_PROP(SchedulerProps, TheSameHoldsWithoutNames, ()) {
  World world(kOptions, false);
  Play(world, AnyOps());
  RC_ASSERT(world.s.cache().blocks_published() == 0u);
  world.Drain();
}

RC_GTEST_PROP(SchedulerProps, AResetAtAnyTimeLosesHitsOnly, ()) {
  World world(kOptions);
  Play(world, AnyOps());
  world.Reset();
  RC_ASSERT(world.s.cache().blocks_published() == 0u);
  Play(world, AnyOps());
  world.Drain();
  RC_ASSERT(world.s.cache().blocks_free() == kOptions.kv_blocks);
}

TEST(SchedulerTest, AHitNeverCoversTheLastPromptToken) {
  World world(kOptions);
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
  World world(kOptions);
  for (int i = 0; i < 3; ++i) world.Add(Tokens(17), 1);
  StepTally sum;
  while (!world.idle()) sum.prefill += world.Step().prefill;
  EXPECT_EQ(sum.prefill, 17u + 1 + 1);
}

// Each has to compute the last block itself, for its logits, so none gains by waiting.
TEST(SchedulerTest, CachedPromptsOfWholeBlocksRunTogether) {
  World world(kOptions);
  world.Add(Tokens(8), 0);
  world.Drain();
  for (int i = 0; i < 2; ++i) world.Add(Tokens(8), 4);
  world.Step();
  EXPECT_EQ(world.s.running(), 2u);
}

TEST(SchedulerTest, WhoeverWaitedForAPrefixComputesItWhenItsOwnerIsCancelled) {
  World world(kOptions);
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
  World world(kOptions);
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
  World world(kOptions);
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
  World world(kOptions);
  world.Add(Tokens(8), 0);
  world.Drain();
  world.Reset();
  world.Add(Tokens(8), 0);
  const StepTally tally = world.Step();
  EXPECT_EQ(tally.prefill, 8u);
  EXPECT_EQ(tally.recomputed, 0u);
}

TEST(SchedulerTest, PreemptionTakesTheYoungestAndItsTokensAreNotCountedAsDecodeAgain) {
  World world(kOptions);
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
