#include "vtoken/budget_controller.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <vector>

namespace hidane::vtoken {
namespace {

constexpr uint32_t kNever = UINT32_MAX;
constexpr PolicyTraits kTraits{
    .trigger = {.after_prefill = true, .over = 16}, .sinks = 4, .recent = 4};

BudgetController Make(BudgetConfig config, PolicyTraits traits = kTraits) {
  auto made = BudgetController::Make(config, traits);
  EXPECT_TRUE(made) << made.error().what;
  return *made;
}

std::optional<uint32_t> Keep(const BudgetController& c, uint32_t prompt, uint32_t logical,
                             uint32_t live) {
  return c.KeepAt({prompt, logical, live});
}

TEST(BudgetControllerTest, ThePromptIsCutToTheCapWhenItIsComplete) {
  const auto c = Make({.cap = 100});
  EXPECT_EQ(Keep(c, 300, 299, 299), std::nullopt) << "inside the prompt";
  EXPECT_EQ(Keep(c, 300, 300, 300), 100u);
  EXPECT_EQ(Keep(c, 100, 100, 100), std::nullopt) << "it fits";
}

TEST(BudgetControllerTest, DecodingRunsWhenAPeriodIsOverTheCap) {
  const auto c = Make({.cap = 100});
  EXPECT_EQ(Keep(c, 300, 315, 115), std::nullopt);
  EXPECT_EQ(Keep(c, 300, 316, 116), 100u);
}

TEST(BudgetControllerTest, ARatioGrowsWithTheStream) {
  const auto c = Make({.keep = 0.5});
  EXPECT_EQ(Keep(c, 300, 300, 300), 150u);
  EXPECT_EQ(Keep(c, 300, 320, 170), std::nullopt);  // 160 may stay, 10 over
  EXPECT_EQ(Keep(c, 300, 332, 182), 166u);
}

TEST(BudgetControllerTest, EveryNthDecodedTokenIsATriggerToo) {
  const auto c = Make({.cap = 100, .trigger = Trigger{.after_prefill = false, .every = 10}});
  EXPECT_EQ(Keep(c, 300, 300, 300), std::nullopt);
  EXPECT_EQ(Keep(c, 300, 309, 309), std::nullopt);
  EXPECT_EQ(Keep(c, 300, 310, 310), 100u);
  EXPECT_EQ(Keep(c, 50, 60, 60), std::nullopt) << "under the cap";
}

TEST(BudgetControllerTest, AShortSequenceIsLeftAlone) {
  const auto c = Make({.keep = 0.1, .min_tokens = 64});
  EXPECT_EQ(Keep(c, 64, 64, 64), std::nullopt);
  EXPECT_EQ(Keep(c, 200, 200, 200), 64u);
}

TEST(BudgetControllerTest, OneRunTakesAtMostItsShare) {
  const auto c = Make({.cap = 100, .evict_max = 0.25});
  EXPECT_EQ(Keep(c, 400, 400, 400), 300u);
  EXPECT_EQ(Keep(c, 400, 401, 301), 226u) << "and the rest at the next trigger";
}

TEST(BudgetControllerTest, WhatCostsTooMuchAttentionFallsBackToFullKvForGood) {
  auto c = Make({.cap = 100, .lost_mass_max = 0.2});
  EXPECT_TRUE(c.Accept(0.2));
  EXPECT_EQ(Keep(c, 300, 300, 300), 100u);
  EXPECT_FALSE(c.Accept(0.21));
  EXPECT_TRUE(c.full());
  EXPECT_EQ(Keep(c, 300, 300, 300), std::nullopt);
  EXPECT_FALSE(c.Accept(0));
  EXPECT_EQ(c.NextRun({300, 10, 10}), kNever);
}

TEST(BudgetControllerTest, FieldsOutOfRangeAreRefusedByName) {
  const auto param = [](BudgetConfig config) {
    const auto made = BudgetController::Make(config, kTraits);
    return made ? "" : made.error().param;
  };
  EXPECT_EQ(param({.keep = 0}), "keep");
  EXPECT_EQ(param({.keep = 1.5}), "keep");
  EXPECT_EQ(param({.evict_max = 0}), "evict_max");
  EXPECT_EQ(param({.lost_mass_max = -1}), "lost_mass_max");
  EXPECT_EQ(param({.cap = 8}), "budget");  // 4 sinks and 4 recent fill it
  EXPECT_EQ(param({.cap = 9}), "");
}

TEST(BudgetControllerTest, RecentTokensAreANumberOrAShareOfWhatStays) {
  PolicyTraits traits = kTraits;
  traits.recent_share = 0.5F;
  const auto c = Make({.cap = 100}, traits);
  EXPECT_EQ(c.RecentOf(100), 50u);
  EXPECT_EQ(c.RecentOf(6), 4u);
}

TEST(BudgetControllerTest, WithoutALimitItNeverRuns) {
  const auto c = Make({});
  EXPECT_EQ(Keep(c, 5000, 5000, 5000), std::nullopt);
  EXPECT_EQ(c.NextRun({5000, 0, 0}), kNever);
}

// NextRun against the plain definition: ask KeepAt token by token.
RC_GTEST_PROP(BudgetControllerProps, NextRunIsWhereKeepAtSaysYesNext, ()) {
  const auto below = [](uint32_t n) { return *rc::gen::inRange<uint32_t>(0, n); };
  PolicyTraits traits = kTraits;
  traits.trigger = {.after_prefill = below(2) == 1, .over = below(40), .every = below(20)};
  const auto c = Make({.cap = below(2) * (20 + below(100)),
                       .keep = (1 + below(10)) / 10.0,
                       .min_tokens = below(100)},
                      traits);
  Lengths at{.prompt = below(200)};
  at.logical = below(300);
  at.live = at.logical <= at.prompt ? at.logical : at.prompt / 2 + at.logical - at.prompt;
  const uint32_t next = c.NextRun(at);
  for (uint32_t d = 1; d < 600; ++d) {
    const bool runs = c.KeepAt({at.prompt, at.logical + d, at.live + d}).has_value();
    RC_ASSERT(runs == (at.logical + d == next) || at.logical + d > next);
    if (runs) break;
  }
}

}  // namespace
}  // namespace hidane::vtoken
