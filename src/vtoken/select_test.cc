#include "vtoken/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <vector>

namespace hidane::vtoken {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Victims among tokens at positions 0 .. n-1.
std::vector<uint32_t> Victims(const std::vector<float>& score, uint32_t keep, Guards guards = {}) {
  std::vector<uint32_t> positions(score.size()), victims;
  std::iota(positions.begin(), positions.end(), 0u);
  std::vector<uint64_t> keys;
  EXPECT_TRUE(SelectVictims(score, positions, guards, keep, keys, victims));
  return victims;
}

TEST(SelectTest, TheLowestScoresGo) {
  EXPECT_THAT(Victims({5, 1, 4, 2, 3}, 3), ElementsAre(1, 3));
}

TEST(SelectTest, NothingGoesWhenAllMayStay) {
  EXPECT_THAT(Victims({5, 1}, 2), IsEmpty());
  EXPECT_THAT(Victims({5, 1}, 3), IsEmpty());
  EXPECT_THAT(Victims({}, 0), IsEmpty());
}

TEST(SelectTest, AmongEqualsTheNewestStays) {
  EXPECT_THAT(Victims({1, 1, 1, 1}, 1), ElementsAre(0, 1, 2));
}

TEST(SelectTest, FloatNoiseDoesNotDecide) {
  const float x = 0.7F, noisy = x * (1 + 1e-6F);
  ASSERT_NE(x, noisy);
  EXPECT_THAT(Victims({noisy, x}, 1), ElementsAre(0));
  EXPECT_THAT(Victims({x, noisy}, 1), ElementsAre(0));
}

TEST(SelectTest, GuardedTokensStayWhateverTheirScore) {
  const PositionSpan pinned[] = {{3, 5}};
  EXPECT_THAT(Victims({0, 9, 8, 0, 0, 7, 6, 0}, 5, {.sinks = 1, .recent = 1, .pinned = pinned}),
              ElementsAre(2, 5, 6));
}

TEST(SelectTest, GuardsGoByPositionNotByIndex) {
  const std::vector<float> score{1, 2, 3, 4};
  const std::vector<uint32_t> positions{5, 6, 90, 99};
  std::vector<uint64_t> keys;
  std::vector<uint32_t> victims;
  // Positions 0-5 are sinks, 90-99 are recent: only the token at 6 may go.
  ASSERT_TRUE(SelectVictims(score, positions, {.sinks = 6, .recent = 10}, 3, keys, victims));
  EXPECT_THAT(victims, ElementsAre(1));
}

TEST(SelectTest, MoreGuardedThanMayStayIsRefused) {
  const std::vector<float> score(8, 1.0F);
  std::vector<uint32_t> positions(8), victims{1, 2, 3};
  std::iota(positions.begin(), positions.end(), 0u);
  std::vector<uint64_t> keys;
  const Status status =
      SelectVictims(score, positions, {.sinks = 4, .recent = 3}, 6, keys, victims);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  EXPECT_THAT(victims, IsEmpty());
}

TEST(SelectTest, NotANumberGoesFirstAndInfinityLast) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_THAT(Victims({inf, -inf, std::nanf(""), 0}, 3), ElementsAre(2));
  EXPECT_THAT(Victims({inf, -inf, 0}, 1), ElementsAre(1, 2));
}

TEST(SelectTest, ZeroHasOneKey) {
  EXPECT_EQ(ScoreKey(0.0F), ScoreKey(-0.0F));
}

RC_GTEST_PROP(SelectProps, KeysSortLikeScoresAndRoundByAtMostHalfAStep, (int32_t a, int32_t b)) {
  const float x = static_cast<float>(a) * 1e-3F, y = static_cast<float>(b) * 1e-3F;
  if (x < y) RC_ASSERT(ScoreKey(x) <= ScoreKey(y));
  // 12 significant bits: scores more than 2^-11 of their size apart keep their order.
  if (std::abs(x - y) > 0x1p-11F * std::max(std::abs(x), std::abs(y)))
    RC_ASSERT((x < y) == (ScoreKey(x) < ScoreKey(y)));
}

// Model: sort all tokens by (guarded, key, position) and drop from the front.
RC_GTEST_PROP(SelectProps, AgreesWithSorting,
              (const std::vector<uint8_t>& raw, uint8_t sinks, uint8_t recent)) {
  const auto n = static_cast<uint32_t>(raw.size());
  std::vector<float> score(raw.begin(), raw.end());
  std::vector<uint32_t> positions(n), victims;
  for (uint32_t i = 0; i < n; ++i) positions[i] = 3 * i;
  const Guards guards{.sinks = sinks % 8u, .recent = recent % 8u};
  const uint32_t length = n == 0 ? 0 : positions.back() + 1;
  std::vector<std::tuple<bool, uint32_t, uint32_t>> order;
  uint32_t guarded = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const bool stays = positions[i] < guards.sinks || positions[i] + guards.recent >= length;
    guarded += stays;
    order.emplace_back(stays, ScoreKey(score[i]), i);
  }
  std::ranges::sort(order);
  const uint32_t keep = *rc::gen::inRange<uint32_t>(guarded, n + 2);
  std::vector<uint32_t> expected;
  for (uint32_t i = 0; i + keep < n; ++i) expected.push_back(std::get<2>(order[i]));
  std::ranges::sort(expected);
  std::vector<uint64_t> keys;
  RC_ASSERT(SelectVictims(score, positions, guards, keep, keys, victims).has_value());
  RC_ASSERT(victims == expected);
}

}  // namespace
}  // namespace hidane::vtoken
