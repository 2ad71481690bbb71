#include "prompt/token_ratio.h"

#include <gtest/gtest.h>

namespace hidane::prompt {
namespace {

TEST(TokenRatioTest, StartsAtFourBytesATokenAndLearnsFromOneLongAnswer) {
  TokenRatio ratio;
  EXPECT_EQ(ratio.Tokens(400), 100u);
  EXPECT_EQ(ratio.Tokens(0), 0u);
  EXPECT_EQ(ratio.Tokens(1), 1u);
  ratio.Observe(100'000, 33'000);
  EXPECT_NEAR(ratio.tokens_per_byte(), 0.33, 0.005);
}

TEST(TokenRatioTest, IgnoresCountsThatNoTokenizerGives) {
  TokenRatio ratio;
  for (const uint64_t tokens : {0ull, 1ull, 100'001ull}) ratio.Observe(100'000, tokens);
  EXPECT_DOUBLE_EQ(ratio.tokens_per_byte(), 0.25);
}

TEST(TokenRatioTest, FollowsAChangeOfWorkload) {
  TokenRatio ratio;
  for (int i = 0; i < 100; ++i) ratio.Observe(100'000, 20'000);
  for (int i = 0; i < 100; ++i) ratio.Observe(100'000, 50'000);
  EXPECT_NEAR(ratio.tokens_per_byte(), 0.5, 0.01);
}

}  // namespace
}  // namespace hidane::prompt
