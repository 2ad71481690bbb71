#include "engine/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <cmath>
#include <limits>
#include <map>

namespace hidane::engine {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(ArgmaxTest, TakesTheLowestIdOfEqualLogits) {
  EXPECT_EQ(Argmax(std::vector<float>{1, 3, 2, 3}), 1);
}

TEST(ArgmaxTest, ARowWithoutAFiniteMaximumHasNoToken) {
  EXPECT_EQ(Argmax(std::vector<float>{kNan, -kInf}), std::nullopt);
  EXPECT_EQ(Argmax(std::vector<float>{0, kInf}), std::nullopt);
  EXPECT_EQ(Argmax(std::vector<float>{kNan, 1}), 1);
}

RC_GTEST_PROP(ArgmaxProps, AgreesWithThePlainLoop, ()) {
  const auto raw = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 9)));
  const std::vector<float> logits(raw.begin(), raw.end());
  size_t best = 0;
  for (size_t i = 1; i < logits.size(); ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  RC_ASSERT(Argmax(logits) == static_cast<TokenId>(best));
}

std::map<TokenId, double> Frequencies(const std::vector<float>& logits,
                                      const SamplingParams& params, int draws = 20000) {
  Sampler sampler;
  Rng rng(7);
  std::map<TokenId, double> share;
  for (int i = 0; i < draws; ++i) share[*sampler.Sample(logits, params, rng)] += 1.0 / draws;
  return share;
}

const std::vector<float> kLogits = {std::log(1.0f), std::log(4.0f), std::log(2.0f), std::log(3.0f)};

TEST(SamplerTest, TemperatureZeroIsGreedyAndDrawsNothing) {
  Sampler sampler;
  Rng rng(1), untouched(1);
  EXPECT_EQ(sampler.Sample(kLogits, {.temperature = 0}, rng), 1);
  EXPECT_EQ(rng.Next(), untouched.Next());
}

TEST(SamplerTest, DrawsInProportionToTheSoftmax) {
  const auto share = Frequencies(kLogits, {});
  for (TokenId id = 0; id < 4; ++id) {
    EXPECT_NEAR(share.at(id), std::exp(kLogits[static_cast<size_t>(id)]) / 10, 0.01);
  }
}

TEST(SamplerTest, TemperatureSharpensOrFlattens) {
  EXPECT_NEAR(Frequencies(kLogits, {.temperature = 0.5f}).at(1), 16.0 / 30, 0.01);
}

TEST(SamplerTest, TopKKeepsTheHighest) {
  const auto share = Frequencies(kLogits, {.top_k = 2});
  EXPECT_EQ(share.size(), 2u);
  EXPECT_NEAR(share.at(1), 4.0 / 7, 0.01);
  EXPECT_NEAR(share.at(3), 3.0 / 7, 0.01);
}

TEST(SamplerTest, TopPKeepsTheSmallestSetThatReachesIt) {
  EXPECT_EQ(Frequencies(kLogits, {.top_p = 0.41f}).size(), 2u);
  EXPECT_EQ(Frequencies(kLogits, {.top_p = 0.01f}).size(), 1u);
}

TEST(SamplerTest, TopPCountsShareAfterTopK) {
  EXPECT_EQ(Frequencies(kLogits, {.top_p = 0.5f, .top_k = 2}).size(), 1u);
}

TEST(SamplerTest, ANucleusWiderThanTheFirstHeadIsFoundWhole) {
  const std::vector<float> flat(1000, 0.0f);
  const auto share = Frequencies(flat, {.top_p = 0.9f}, 2000);
  EXPECT_GT(share.rbegin()->first, 890);
  EXPECT_LT(share.rbegin()->first, 901);
}

TEST(TopLogprobsTest, ChosenFirstThenTheHighestWhateverTheTemperatureWas) {
  const auto top = TopLogprobs(kLogits, 0, 2);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].id, 0);
  EXPECT_EQ(top[1].id, 1);
  EXPECT_EQ(top[2].id, 3);
  EXPECT_NEAR(top[0].logprob, std::log(0.1), 1e-6);
  EXPECT_NEAR(top[1].logprob, std::log(0.4), 1e-6);
}

}  // namespace
}  // namespace hidane::engine
