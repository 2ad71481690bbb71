#include "vtoken/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "vtoken/policy_rkv.h"
#include "vtoken/policy_snapkv.h"

namespace hidane::vtoken {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

std::vector<uint32_t> Positions(uint32_t n) {
  std::vector<uint32_t> positions(n);
  std::iota(positions.begin(), positions.end(), 0u);
  return positions;
}

std::vector<float> Score(std::string_view name, const TokenView& view) {
  const auto policy = MakePolicy(name);
  std::vector<float> score(view.size(), 99.0F);
  (*policy)->Score(view, score);
  return score;
}

/// Keys [n][2] with their lengths; the view points into it.
struct Keys {
  explicit Keys(std::vector<float> values) : rows(std::move(values)) {
    for (size_t i = 0; i < rows.size(); i += 2) norms.push_back(std::hypot(rows[i], rows[i + 1]));
  }
  TokenView View(std::span<const uint32_t> positions) const {
    return {.logical_length = positions.back() + 1,
            .positions = positions,
            .key_norm = norms,
            .key_rows = rows,
            .head_dim = 2};
  }
  std::vector<float> rows, norms;
};

TEST(PolicyTest, EveryShippedPolicyIsFoundByItsNameAndItsTraitsHold) {
  EXPECT_EQ(PolicyNames().size(), 8u);
  for (const std::string_view name : PolicyNames()) {
    const auto policy = MakePolicy(name);
    ASSERT_TRUE(policy) << name;
    EXPECT_EQ((*policy)->name(), name);
    EXPECT_TRUE(CheckTraits(**policy)) << name;
  }
}

TEST(PolicyTest, AnUnknownNameIsRefusedAndNamed) {
  const auto policy = MakePolicy("h20");
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().code, Code::kInvalidArgument);
  EXPECT_NE(policy.error().what.find("h20"), std::string::npos);
}

// Issue 5 promises it, and the library exists to make it possible.
TEST(PolicyTest, NoPolicyIsLongerThanFiftyLines) {
  size_t policies = 0;
  for (const auto& file : std::filesystem::directory_iterator(HIDANE_SOURCE_DIR "/src/vtoken")) {
    const std::string name = file.path().filename().string();
    if (!name.starts_with("policy_") || file.path().extension() != ".cc") continue;
    if (!std::filesystem::exists(std::filesystem::path(file.path()).replace_extension(".h")) ||
        name.ends_with("_test.cc") || name == "policy_run.cc")
      continue;
    std::ifstream in(file.path());
    std::string line;
    size_t lines = 0;
    while (std::getline(in, line)) ++lines;
    EXPECT_LE(lines, 50u) << name;
    ++policies;
  }
  EXPECT_EQ(policies, PolicyNames().size());
}

/// A policy that declares whatever a test wants.
struct Declared final : Policy {
  explicit Declared(PolicyTraits t) : traits_(t) {}
  std::string_view name() const override { return "declared"; }
  PolicyTraits traits() const override { return traits_; }
  void Score(const TokenView&, std::span<float>) override {}
  PolicyTraits traits_;
};

TEST(PolicyTest, TraitsThatContradictEachOtherAreRefused) {
  const auto code = [](PolicyTraits t) {
    const Status status = CheckTraits(Declared(t));
    return status ? Code::kInternal : status.error().code;
  };
  EXPECT_EQ(code({.signals = {Signal::kKeyNorm}, .scope = Scope::kLayer}), Code::kInvalidArgument);
  EXPECT_EQ(code({.signals = {Signal::kWindowSum}}), Code::kInvalidArgument);
  EXPECT_EQ(code({.origin = Origin::kWindow}), Code::kInvalidArgument);
  EXPECT_EQ(code({.low_factor = 0}), Code::kInvalidArgument);
  EXPECT_EQ(code({.recent_share = 1}), Code::kInvalidArgument);
  EXPECT_EQ(code({.low_factor = std::nanf("")}), Code::kInvalidArgument);
}

TEST(PolicyTest, RandomDrawsByPositionAndSeedAlone) {
  const auto all = Positions(64);
  const std::vector<uint32_t> few{3, 9, 40};
  const auto score = Score("random", {.seed = 7, .positions = all});
  const auto part = Score("random", {.unit = 5, .seed = 7, .positions = few});
  EXPECT_THAT(part, ElementsAre(score[3], score[9], score[40]));
  EXPECT_NE(Score("random", {.seed = 8, .positions = all}), score);
  for (const float s : score) EXPECT_TRUE(s >= 0 && s < 1) << s;
}

TEST(PolicyTest, StreamingLlmPrefersTheNewer) {
  const std::vector<uint32_t> positions{0, 1, 7, 300};
  EXPECT_THAT(Score("streaming-llm", {.positions = positions}), ElementsAre(0, 1, 7, 300));
}

TEST(PolicyTest, H2oKeepsTheHeavyHitters) {
  const auto positions = Positions(3);
  const std::vector<float> sums{2.5F, 0.25F, 1.0F};
  EXPECT_THAT(Score("h2o", {.positions = positions, .column_sum = sums}),
              ElementsAre(2.5F, 0.25F, 1.0F));
}

TEST(PolicyTest, ScissorhandsDropsWhatWasUnimportantMostOften) {
  const auto positions = Positions(3);
  const std::vector<float> counts{0, 7, 3};
  EXPECT_THAT(Score("scissorhands", {.positions = positions, .low_count = counts}),
              ElementsAre(0, -7, -3));
}

TEST(PolicyTest, TovaDropsWhatTheNewestQueryWeighsLeast) {
  const auto positions = Positions(3);
  const std::vector<float> row{0.5F, 0.125F, 0.375F};
  EXPECT_THAT(Score("tova", {.positions = positions, .last_row = row}),
              ElementsAre(0.5F, 0.125F, 0.375F));
}

// Six tokens before the window of 32. Pooling by 5, cut at both ends, always divided by 5:
//   sums  5  0  0 10  0  0 | window...        token 0: (5+0+0)/5 = 1      token 3: 10/5 = 2
//                                             token 1: (5+0+0+10)/5 = 3   token 5: (10+0+0)/5 = 2
TEST(PolicyTest, SnapKvPoolsTheWindowsWeightsOverNeighborsOutsideTheWindow) {
  const auto positions = Positions(6 + SnapKvPolicy::kWindow);
  std::vector<float> sums(positions.size(), 100.0F);  // the window's own weights must not leak
  const std::vector<float> before{5, 0, 0, 10, 0, 0};
  std::ranges::copy(before, sums.begin());
  const auto score = Score("snapkv", {.logical_length = static_cast<uint32_t>(positions.size()),
                                      .positions = positions,
                                      .window_sum = sums});
  EXPECT_THAT(std::vector<float>(score.begin(), score.begin() + 6), ElementsAre(1, 3, 3, 2, 2, 2));
  EXPECT_EQ(score.back(), 0);
}

// Keys (3,4) (4,3) (0,-2): normalized (.6,.8) (.8,.6) (0,-1); sum (1.4,.4), length sqrt(2.12).
//   cosines  (.84+.32)/1.456  (1.12+.24)/1.456  -.4/1.456  =  .7967  .9340  -.2747
TEST(PolicyTest, KeyDiffKeepsWhatDiffersFromTheMeanKey) {
  const Keys keys({3, 4, 4, 3, 0, -2});
  const auto positions = Positions(3);
  EXPECT_THAT(Score("keydiff", keys.View(positions)),
              Pointwise(FloatNear(1e-4F), {-0.7967F, -0.9340F, 0.2747F}));
}

TEST(PolicyTest, KeyDiffScoresNullKeysWithoutDividingByZero) {
  const Keys keys({0, 0, 0, 0});
  const auto positions = Positions(2);
  EXPECT_THAT(Score("keydiff", keys.View(positions)), ElementsAre(0, 0));
}

// Three live tokens, positions 0, 1 and 9, length 10: the last lies in the window of 8 (from 2).
// Normalized keys a = (1,0), b = (0,1), a again at 9.
//   later cosines: 0: (0 + 1)/3, 1: 0, 9: 0    softmax of (1/3, 0, 0): e = 1.3956 / 3.3956 =
//   .41100, .29450, .29450.  importance: window sums 4 and 8, max over neighbors = 8 for both, / 8
//   = 1. score: .1 - .9 * .41100 = -.26990;  .1 - .9 * .29450 = -.16505;  0 - .26505 = -.26505
TEST(PolicyTest, RKvWeighsImportanceAgainstWhatIsSaidAgainLater) {
  const Keys keys({2, 0, 0, 5, 1, 0});
  const std::vector<uint32_t> positions{0, 1, 9};
  const std::vector<float> sums{4, 8, 1000};
  TokenView view = keys.View(positions);
  view.window_sum = sums;
  EXPECT_THAT(Score("r-kv", view), Pointwise(FloatNear(1e-4F), {-0.26990F, -0.16505F, -0.26505F}));
}

TEST(PolicyTest, RKvKeepsTheLatestOfEqualKeys) {
  const Keys keys({1, 2, 1, 2, 1, 2});
  const std::vector<uint32_t> positions{0, 1, 2};
  const std::vector<float> sums{0, 0, 0};
  TokenView view = keys.View(positions);
  view.logical_length = 100;
  view.window_sum = sums;
  const auto score = Score("r-kv", view);
  EXPECT_LT(score[0], score[1]);
  EXPECT_LT(score[1], score[2]);
}

}  // namespace
}  // namespace hidane::vtoken
