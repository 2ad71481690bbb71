#include "sim/trace_stats.h"

#include <gtest/gtest.h>

#include "sim/trace_test_util.h"

namespace hidane::sim {
namespace {

TEST(TraceStats, IdealHitCountsTokensOfLeadingBlocksThatWereSeen) {
  const Trace trace = MustParse(
      R"({"timestamp": 0, "input_length": 1024, "output_length": 10, "hash_ids": [1, 2]})"
      "\n"
      R"({"timestamp": 1, "input_length": 1000, "output_length": 20, "hash_ids": [1, 2]})"
      "\n"
      R"({"timestamp": 2000, "input_length": 1024, "output_length": 30, "hash_ids": [3, 2]})");
  const TraceStats stats = StatsOf(trace);
  EXPECT_DOUBLE_EQ(stats.ideal_hit, 1000.0 / 3048);
  EXPECT_EQ(stats.distinct_blocks, 4u);
  EXPECT_DOUBLE_EQ(stats.duration_s, 2);
  EXPECT_EQ(stats.output.p50, 20u);
  EXPECT_EQ(stats.output.max, 30u);
}

// The table of the trace collection's README, which was computed by another program.
struct Known {
  std::string file;
  uint64_t requests, sessions;
  double duration_s, input_mean;
  uint32_t input_p50, input_p90, input_p99, input_max;
  uint32_t output_p50, output_p90, output_p99;
  double ideal, within;  // percent
};

TEST(TraceStats, PublicTracesHaveTheirPublishedStatistics) {
  const std::vector<Known> table = {
      {"mooncake/conversation_trace.jsonl.gz", 12'031, 12'031, 3537, 12'035, 6'909, 27'367, 85'401,
       126'195, 350, 597, 1'120, 37.4, 0},
      {"mooncake/synthetic_trace.jsonl.gz", 3'993, 3'993, 1022, 15'325, 11'587, 38'615, 66'458,
       191'378, 69, 389, 769, 65.1, 0},
      {"azure2023/AzureLLMInferenceTrace_code.csv.gz", 8'819, 8'819, 3436, 2'048, 1'469, 5'194,
       7'436, 7'437, 13, 55, 252, 0, 0},
      {"azure2023/AzureLLMInferenceTrace_conv.csv.gz", 19'366, 19'366, 3502, 1'155, 1'020, 2'735,
       4'142, 14'050, 129, 424, 601, 0, 0},
      {"claude-code/agentic_sessions_delta.jsonl.gz", 46'218, 692, 0, 118'296, 100'446, 209'039,
       505'880, 894'371, 218, 893, 3'723, 96.3, 96.2},
  };
  for (const Known& known : table) {
    const auto trace = PublicTrace(known.file);
    if (!trace) GTEST_SKIP() << "HIDANE_TRACES is not set";
    SCOPED_TRACE(known.file);
    const TraceStats s = StatsOf(*trace);
    EXPECT_EQ(s.requests, known.requests);
    EXPECT_EQ(s.sessions, known.sessions);
    EXPECT_NEAR(s.duration_s, known.duration_s, 0.5);
    EXPECT_NEAR(s.input.mean, known.input_mean, 0.5);
    EXPECT_EQ(s.input.p50, known.input_p50);
    EXPECT_EQ(s.input.p90, known.input_p90);
    EXPECT_EQ(s.input.p99, known.input_p99);
    EXPECT_EQ(s.input.max, known.input_max);
    EXPECT_EQ(s.output.p50, known.output_p50);
    EXPECT_EQ(s.output.p90, known.output_p90);
    EXPECT_EQ(s.output.p99, known.output_p99);
    EXPECT_NEAR(100 * s.ideal_hit, known.ideal, 0.05);
    EXPECT_NEAR(100 * s.session_hit, known.within, 0.05);
  }
}

}  // namespace
}  // namespace hidane::sim
