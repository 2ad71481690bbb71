#include "vtoken/policy_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "vtoken/budget_controller.h"
#include "vtoken/recorded_attention.h"

namespace hidane::vtoken {
namespace {

using ::testing::ElementsAre;

constexpr HeadShape kShape{.layers = 2, .q_heads = 4, .kv_heads = 2};

/// Scores by what it is told to look at, so that a test can follow a number through.
struct Echo final : Policy {
  explicit Echo(PolicyTraits t) : traits_(t) {}
  std::string_view name() const override { return "echo"; }
  PolicyTraits traits() const override { return traits_; }
  void Score(const TokenView& view, std::span<float> score) override {
    seen.emplace_back(view.column_sum.begin(), view.column_sum.end());
    std::ranges::copy(view.column_sum, score.begin());
  }
  PolicyTraits traits_;
  std::vector<std::vector<float>> seen;
};

/// A store whose column sums are `value(row, slot)`, row = layer * q_heads + head.
template <class F>
SignalStore Filled(const PolicyTraits& traits, uint32_t slots, F value) {
  SignalStore store(kShape, traits, 0);
  store.Reserve(slots);
  const StepSignals step = store.Step(0, 1, 1);
  for (uint32_t row = 0; row < kShape.layers * kShape.q_heads; ++row)
    for (uint32_t slot = 0; slot < slots; ++slot)
      step.column_sum[row * step.stride + slot] = value(row, slot);
  return store;
}

/// One unit's tokens, slot by slot.
struct Table final : TokenPlaces {
  explicit Table(std::vector<std::pair<uint32_t, uint32_t>> slot_positions)
      : tokens(std::move(slot_positions)) {}
  void Read(uint32_t, std::span<uint32_t> slots, std::span<uint32_t> positions) const override {
    for (size_t i = 0; i < tokens.size(); ++i) std::tie(slots[i], positions[i]) = tokens[i];
  }
  std::vector<std::pair<uint32_t, uint32_t>> tokens;
};

// Slot 2 is dead, as in masked mode; the others hold the positions 7, 0, 9, 3.
TEST(PolicyRunTest, APolicySeesLogicalOrderWhereverTheTokensLie) {
  Echo policy({.signals = {Signal::kColumnSum}, .scope = Scope::kSequence});
  const auto store =
      Filled(policy.traits(), 5, [](uint32_t, uint32_t slot) { return 10.0F * slot; });
  const Table table({{0, 7}, {1, 0}, {3, 9}, {4, 3}});
  PolicyRunner runner(policy, kShape);
  Victims victims;
  ASSERT_TRUE(runner.Run(
      {.live = 4, .slots = 5, .logical_length = 10, .keep = 2, .places = &table, .signals = &store},
      victims));
  EXPECT_THAT(policy.seen[0], ElementsAre(10, 40, 0, 30));  // positions 0, 3, 7, 9
  EXPECT_THAT(victims.positions, ElementsAre(0, 7));        // scores 10 and 0
  EXPECT_THAT(victims.slots, ElementsAre(1, 0));
}

TEST(PolicyRunTest, QueryHeadsAreReducedAsThePolicySays) {
  // Column sum = row index: KV head u has the rows 2u and 2u + 1; layer 1 has the rows 4-7.
  const auto row_index = [](uint32_t row, uint32_t) { return static_cast<float>(row); };
  const auto first_seen = [&](Scope scope, Reduce reduce) {
    Echo policy({.signals = {Signal::kColumnSum}, .scope = scope, .reduce = reduce});
    const auto store = Filled(policy.traits(), 2, row_index);
    Victims victims;
    EXPECT_TRUE(PolicyRunner(policy, kShape)
                    .Run({.live = 2, .slots = 2, .logical_length = 2, .keep = 1, .signals = &store},
                         victims));
    std::vector<float> first;
    for (const auto& view : policy.seen) first.push_back(view[0]);
    return first;
  };
  EXPECT_THAT(first_seen(Scope::kKvHead, Reduce::kMean), ElementsAre(0.5, 2.5, 4.5, 6.5));
  EXPECT_THAT(first_seen(Scope::kKvHead, Reduce::kMax), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(first_seen(Scope::kLayer, Reduce::kMean), ElementsAre(1.5, 5.5));
  EXPECT_THAT(first_seen(Scope::kSequence, Reduce::kMax), ElementsAre(7));
}

TEST(PolicyRunTest, EveryUnitLosesTheSameNumberOfTokens) {
  Echo policy({.signals = {Signal::kColumnSum}});
  const auto store = Filled(policy.traits(), 8, [](uint32_t row, uint32_t slot) {
    return static_cast<float>((slot * 5 + row) % 8);
  });
  Victims victims;
  ASSERT_TRUE(PolicyRunner(policy, kShape)
                  .Run({.live = 8, .slots = 8, .logical_length = 8, .keep = 5, .signals = &store},
                       victims));
  EXPECT_EQ(victims.units, 4u);
  EXPECT_EQ(victims.per_unit, 3u);
  EXPECT_EQ(victims.slots.size(), 12u);
  EXPECT_FALSE(std::ranges::equal(victims.SlotsOf(0), victims.SlotsOf(2))) << "sets differ";
}

TEST(PolicyRunTest, TheVictimsShareOfTheAttentionMassIsTold) {
  Echo policy({.signals = {Signal::kColumnSum}, .scope = Scope::kSequence});
  const auto store =
      Filled(policy.traits(), 4, [](uint32_t, uint32_t slot) { return slot + 1.0F; });
  Victims victims;
  ASSERT_TRUE(PolicyRunner(policy, kShape)
                  .Run({.live = 4, .slots = 4, .logical_length = 4, .keep = 2, .signals = &store},
                       victims));
  EXPECT_DOUBLE_EQ(victims.lost_mass, 0.3);  // (1 + 2) / (1 + 2 + 3 + 4)
}

TEST(PolicyRunTest, TooManyGuardedTokensAreAnError) {
  Echo policy({.signals = {Signal::kColumnSum}, .scope = Scope::kSequence});
  const auto store = Filled(policy.traits(), 4, [](uint32_t, uint32_t) { return 0.0F; });
  Victims victims;
  const Status run = PolicyRunner(policy, kShape)
                         .Run({.live = 4,
                               .slots = 4,
                               .logical_length = 4,
                               .keep = 2,
                               .guards = {.sinks = 3},
                               .signals = &store},
                              victims);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, Code::kInvalidArgument);
}

/// Victims of a 300-token prompt that was computed from `from` on, in chunks.
Victims AfterPrompt(std::string_view name, uint32_t from, uint32_t chunk, uint32_t mark) {
  constexpr uint32_t kPrompt = 300;
  auto policy = std::move(*MakePolicy(name));
  const PolicyTraits traits = policy->traits();
  auto budget = *BudgetController::Make({.cap = 120}, traits);
  SignalStore store(kShape, traits,
                    OriginPosition(traits.origin, kPrompt, mark, traits.window_rows));
  const RecordedAttention attention{kShape};
  for (uint32_t first = std::min(from, store.origin()); first < kPrompt; first += chunk) {
    const uint32_t n = std::min(chunk, kPrompt - first);
    store.Reserve(first + n);
    const uint32_t next = budget.NextRun({kPrompt, first, first});
    if (store.wanted()) attention.Add(store.Step(first, n, next), first, n);
  }
  // A policy that doesn't run after the prompt by itself runs here all the same.
  const uint32_t keep = budget.KeepAt({kPrompt, kPrompt, kPrompt}).value_or(120);
  const RecordedKeys keys(8);
  Victims victims;
  EXPECT_TRUE(PolicyRunner(*policy, kShape)
                  .Run({.live = kPrompt,
                        .slots = kPrompt,
                        .logical_length = kPrompt,
                        .keep = keep,
                        .guards = {.sinks = traits.sinks, .recent = budget.RecentOf(keep)},
                        .seed = 5,
                        .signals = &store,
                        .keys = &keys},
                       victims));
  return victims;
}

TEST(PolicyRunTest, VictimsAreTheSameColdWarmAndInAnyChunks) {
  for (const std::string_view name : PolicyNames()) {
    const Victims cold = AfterPrompt(name, 0, 2048, 100);
    EXPECT_EQ(cold.per_unit, 180u) << name;
    for (const auto& [from, chunk] : std::vector<std::pair<uint32_t, uint32_t>>{
             {0, 64}, {0, 1}, {64, 2048}, {96, 33}, {288, 64}}) {
      const Victims other = AfterPrompt(name, from, chunk, 100);
      EXPECT_EQ(other.slots, cold.slots) << name << " from " << from << " by " << chunk;
      EXPECT_EQ(other.lost_mass, cold.lost_mass) << name;
    }
  }
}

TEST(PolicyRunTest, GuardedTokensSurviveEveryPolicy) {
  for (const std::string_view name : PolicyNames()) {
    const PolicyTraits traits = (*MakePolicy(name))->traits();
    for (const uint32_t victim : AfterPrompt(name, 0, 64, 0).positions) {
      EXPECT_GE(victim, traits.sinks) << name;
      EXPECT_LT(victim, 300 - traits.recent) << name;
    }
  }
}

}  // namespace
}  // namespace hidane::vtoken
