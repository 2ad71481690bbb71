#include "sim/trace_marks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/trace_test_util.h"

namespace hidane::sim {
namespace {

TEST(TraceMarks, StaticPrefixEndsWhereManyConversationsPart) {
  std::string text;
  for (uint32_t i = 0; i < kBranches; ++i) {  // a template of three blocks, then own text
    text +=
        fmt::format(R"({{"timestamp": {0}, "input_length": 2560, "hash_ids": [1, 2, 3, {1}, {2}]}})"
                    "\n",
                    i, 100 + i, 200 + i);
  }
  text += R"({"timestamp": 99, "input_length": 512, "hash_ids": [7]})";
  const Trace trace = MustParse(text);
  EXPECT_EQ(trace.turns[0].k1_end, 3u);
  EXPECT_EQ(trace.turns[0].k2_end, 4u);
  EXPECT_EQ(trace.turns.back().k1_end, 0u);
  EXPECT_EQ(trace.turns.back().k2_end, 1u);
}

TEST(TraceMarks, AFewForksMakeNoStaticPrefix) {
  std::string text;
  for (uint32_t i = 0; i + 1 < kBranches; ++i) {
    text += fmt::format(R"({{"timestamp": {0}, "input_length": 1024, "hash_ids": [1, {1}]}})"
                        "\n",
                        i, 100 + i);
  }
  const Trace trace = MustParse(text);
  EXPECT_EQ(trace.turns[0].k1_end, 0u);
  EXPECT_EQ(trace.turns[0].k2_end, 1u);
}

}  // namespace
}  // namespace hidane::sim
