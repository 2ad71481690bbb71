#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "vtoken/policy_run.h"
#include "vtoken/recorded_attention.h"

// The policy of docs/write_a_policy.md, word for word; the last test compares.
namespace hidane::vtoken {
namespace {

using ::testing::ElementsAre;

/// Keeps the tokens with the shortest keys.
///
///   score = - |k|
///
/// Source: arXiv 2406.11430. Deviation: all layers evict; the paper spares the first two.
class L2NormPolicy final : public Policy {
 public:
  std::string_view name() const override { return "l2norm"; }
  PolicyTraits traits() const override {
    return {.signals = {Signal::kKeyNorm},
            .trigger = {.after_prefill = true, .over = 64},
            .origin = Origin::kPromptEnd};
  }
  void Score(const TokenView& view, std::span<float> score) override {
    for (size_t i = 0; i < view.size(); ++i) score[i] = -view.key_norm[i];
  }
};

TEST(L2NormPolicyTest, TheShortestKeysStay) {
  const std::vector<uint32_t> positions{0, 1, 2};
  const std::vector<float> norms{3, 1, 2};
  std::vector<float> score(3);
  L2NormPolicy().Score({.positions = positions, .key_norm = norms}, score);
  EXPECT_THAT(score, ElementsAre(-3, -1, -2));
}

TEST(L2NormPolicyTest, TheLibraryKeepsFortyTokensOfEachHead) {
  L2NormPolicy policy;
  ASSERT_TRUE(CheckTraits(policy));
  const HeadShape shape{.layers = 2, .q_heads = 3, .kv_heads = 1};
  const RecordedKeys keys(/*dim=*/8);
  Victims victims;
  ASSERT_TRUE(PolicyRunner(policy, shape)
                  .Run({.live = 100,
                        .slots = 100,
                        .logical_length = 100,
                        .keep = 40,
                        .guards = {.sinks = 4, .recent = 16},
                        .keys = &keys},
                       victims));
  EXPECT_EQ(victims.units, 2u);
  EXPECT_EQ(victims.per_unit, 60u);
  for (const uint32_t position : victims.positions) EXPECT_TRUE(position >= 4 && position < 84);
}

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(WriteAPolicyTest, WhatTheDocumentShowsIsWhatIsCompiledHere) {
  const std::string document = Read(HIDANE_SOURCE_DIR "/docs/write_a_policy.md");
  const std::string here = Read(HIDANE_SOURCE_DIR "/src/vtoken/write_a_policy_test.cc");
  const std::string fence = "```cpp\n";
  size_t blocks = 0;
  for (size_t at = document.find(fence); at != std::string::npos; at = document.find(fence, at)) {
    at += fence.size();
    const std::string block = document.substr(at, document.find("```", at) - at);
    EXPECT_NE(here.find(block), std::string::npos) << block;
    ++blocks;
  }
  EXPECT_EQ(blocks, 3u);
}

}  // namespace
}  // namespace hidane::vtoken
