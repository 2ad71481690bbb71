#include "sim/trace_parse.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <array>
#include <fstream>

#include "sim/trace_test_util.h"

namespace hidane::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

size_t CommonBlocks(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  return i;
}

TEST(TraceParse, MooncakeRequestsShareTheBlocksWhoseIdsAreEqual) {
  const Trace trace = MustParse(
      R"({"timestamp": 3000, "input_length": 1300, "output_length": 7, "hash_ids": [0, 1, 3]})"
      "\n"
      R"({"timestamp": 27, "input_length": 1200, "output_length": 5, "hash_ids": [0, 1, 2]})");
  EXPECT_EQ(trace.format, TraceFormat::kMooncake);
  ASSERT_EQ(trace.sessions.size(), 2u);
  const TraceTurn& first = trace.TurnsOf(trace.sessions[0])[0];  // by time, not by line
  EXPECT_EQ(first.at, std::chrono::milliseconds(27));
  EXPECT_EQ(first.input_tokens, 1200u);
  EXPECT_EQ(first.output_tokens, 5u);
  EXPECT_EQ(CommonBlocks(ChainsOf(trace, 0)[0], ChainsOf(trace, 1)[0]), 2u);
  PromptBuilder prompt;
  prompt.Apply(trace, first);
  EXPECT_THAT(prompt.ends(), ElementsAre(512, 1024, 1200));
}

TEST(TraceParse, IdsOfTextAloneDoNotMatchAfterAnotherBeginning) {
  const Trace trace = MustParse(R"({"timestamp": 0, "input_length": 1024, "hash_ids": [1, 4]})"
                                "\n"
                                R"({"timestamp": 1, "input_length": 1024, "hash_ids": [2, 4]})");
  EXPECT_NE(ChainsOf(trace, 0)[0][1], ChainsOf(trace, 1)[0][1]);
}

TEST(TraceParse, AiperfSessionsGoOnWithTheirAnswers) {
  const Trace trace = MustParse(
      R"({"session_id": "a", "timestamp": 10, "input_length": 600, "output_length": 100, "hash_ids": [7, 8]})"
      "\n"
      R"({"session_id": "b", "timestamp": 20, "input_length": 512, "hash_ids": [7]})"
      "\n"
      R"({"session_id": "a", "delay": 1500, "input_length": 40})");
  ASSERT_EQ(trace.sessions.size(), 2u);
  const auto turns = trace.TurnsOf(trace.sessions[0]);
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(turns[1].think, std::chrono::milliseconds(1500));
  EXPECT_EQ(turns[1].input_tokens, 740u);
  const auto chains = ChainsOf(trace, 0);
  EXPECT_EQ(CommonBlocks(chains[0], chains[1]), 2u);
  PromptBuilder prompt;
  prompt.Apply(trace, turns[0]);
  prompt.Apply(trace, turns[1]);
  EXPECT_THAT(prompt.ends(), ElementsAre(512, 600, 700, 740));
  EXPECT_EQ(ChainsOf(trace, 1)[0][0], chains[0][0]);
}

TEST(TraceParse, BailianChatsFollowTheirParents) {
  const Trace trace = MustParse(
      R"({"chat_id": 5, "parent_chat_id": -1, "timestamp": 61.5, "input_length": 40, "output_length": 3, "type": "text", "turn": 1, "hash_ids": [1, 2, 9]})"
      "\n"
      R"({"chat_id": 6, "parent_chat_id": 5, "timestamp": 70, "input_length": 48, "output_length": 3, "type": "text", "turn": 2, "hash_ids": [1, 2, 3]})"
      "\n"
      R"({"chat_id": 9, "parent_chat_id": 4, "timestamp": 71, "input_length": 16, "output_length": 3, "type": "text", "turn": 3, "hash_ids": [1]})");
  EXPECT_EQ(trace.format, TraceFormat::kBailian);
  ASSERT_EQ(trace.sessions.size(), 2u);
  EXPECT_EQ(trace.sessions[0].turns, 2u);
  EXPECT_EQ(trace.TurnsOf(trace.sessions[0])[0].at, std::chrono::milliseconds(61'500));
  const auto chains = ChainsOf(trace, 0);
  EXPECT_EQ(CommonBlocks(chains[0], chains[1]), 2u);
  EXPECT_EQ(CommonBlocks(chains[0], ChainsOf(trace, 1)[0]), 1u);
}

constexpr std::string_view kClaudeHead =
    R"({"id": "A", "block_size": 64, "tool_tokens": 70, "system_tokens": 60, "requests": [)";

/// A session whose requests are spread over several lines here.
Trace ParseSession(std::string_view requests) {
  std::string line = std::string(kClaudeHead) + std::string(requests);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return MustParse(line);
}

TEST(TraceParse, ClaudeSessionsAreBuiltFromTheirDifferences) {
  const Trace trace = ParseSession(
      R"({"t": 0, "type": "n", "model": "m", "in": 330, "out": 9, "keep": 0, "add": [[1, 5]]},
         {"t": 4, "type": "n", "model": "m", "in": 450, "out": 0, "think_time": 2.5, "keep": 5, "add": [[7, 2]]},
         {"t": 9, "type": "n", "model": "m", "in": 256, "out": 1, "think_time": 1, "keep": 2, "add": [[20, 2]]}]})");
  EXPECT_FALSE(trace.timed);
  const auto turns = trace.TurnsOf(trace.sessions[0]);
  ASSERT_EQ(turns.size(), 3u);
  EXPECT_EQ(turns[1].think, std::chrono::milliseconds(2500));
  EXPECT_EQ(turns[1].output_tokens, 1u);
  const auto chains = ChainsOf(trace, 0);
  EXPECT_EQ(chains[0].size(), 6u);  // 330 tokens: five ids and a tail of its own
  EXPECT_EQ(CommonBlocks(chains[0], chains[1]), 5u);
  EXPECT_EQ(CommonBlocks(chains[1], chains[2]), 2u);
  // 130 static tokens fill two blocks; the first user message ends with the first request.
  EXPECT_EQ(turns[0].k1_end, 2u);
  EXPECT_EQ(turns[0].k2_end, 5u);
  EXPECT_EQ(turns[1].k2_end, 5u);
  EXPECT_EQ(turns[2].k2_end, 4u);  // rewritten after K1: another conversation
}

TEST(TraceParse, ClaudeSessionsShareToolsAndSystemTextOfEqualSize) {
  const std::string requests =
      R"({"t": 0, "type": "n", "model": "m", "in": 256, "out": 1, "keep": 0, "add": [[1, 4]]}]})";
  const std::string same =
      R"({"id": "B", "block_size": 64, "tool_tokens": 70, "system_tokens": 60, "requests": [)";
  const std::string other =
      R"({"id": "C", "block_size": 64, "tool_tokens": 71, "system_tokens": 60, "requests": [)";
  const Trace trace = MustParse(std::string(kClaudeHead) + requests + "\n" + same + requests +
                                "\n" + other + requests);
  ASSERT_EQ(trace.sessions.size(), 3u);
  const auto a = ChainsOf(trace, 0)[0];
  EXPECT_EQ(CommonBlocks(a, ChainsOf(trace, 1)[0]), 2u);
  EXPECT_EQ(CommonBlocks(a, ChainsOf(trace, 2)[0]), 0u);
}

TEST(TraceParse, ClaudePartialBlockThatIsKeptIsWholeInTheNextPrompt) {
  const Trace trace = ParseSession(
      R"({"t": 0, "type": "n", "model": "m", "in": 100, "out": 9, "keep": 0, "add": [[1, 2]]},
         {"t": 4, "type": "n", "model": "m", "in": 192, "out": 9, "keep": 2, "add": [[3, 1]]},
         {"t": 5, "type": "n", "model": "m", "in": 192, "out": 9, "keep": 3, "add": []}]})");
  const auto chains = ChainsOf(trace, 0);
  EXPECT_EQ(chains[1].size(), 3u);
  EXPECT_EQ(CommonBlocks(chains[0], chains[1]), 1u);
  EXPECT_EQ(chains[1], chains[2]);
}

TEST(TraceParse, ClaudeSubagentsAreSessionsThatShareTheirParentsIds) {
  const Trace trace = ParseSession(
      R"({"t": 0, "type": "n", "model": "m", "in": 128, "out": 1, "keep": 0, "add": [[1, 2]]},
         {"t": 1, "type": "subagent", "tool_tokens": 0, "system_tokens": 0, "requests": [
           {"t": 0, "type": "n", "model": "m", "in": 64, "out": 1, "keep": 0, "add": [[30, 1]]}]},
         {"t": 2, "type": "n", "model": "m", "in": 192, "out": 1, "keep": 2, "add": [[3, 1]]}]})");
  ASSERT_EQ(trace.sessions.size(), 2u);
  EXPECT_FALSE(trace.sessions[0].subagent);
  EXPECT_EQ(trace.sessions[0].turns, 2u);
  EXPECT_TRUE(trace.sessions[1].subagent);
  EXPECT_EQ(CommonBlocks(ChainsOf(trace, 0)[0], ChainsOf(trace, 0)[1]), 2u);
}

TEST(TraceParse, AzureTimesCountFromTheFirst) {
  const Trace trace = MustParse(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2023-12-31 23:59:59.5000000,4808,10\r\n"
      "2024-01-01 00:00:01.2500000,3180,0\n");
  ASSERT_EQ(trace.turns.size(), 2u);
  EXPECT_EQ(trace.turns[1].at, std::chrono::milliseconds(1750));
  EXPECT_EQ(trace.turns[1].output_tokens, 1u);
  EXPECT_EQ(CommonBlocks(ChainsOf(trace, 0)[0], ChainsOf(trace, 1)[0]), 0u);
}

TEST(TraceParse, CsvTenantsShareTheirStaticPartAndConversationsGrow) {
  const Trace trace = MustParse(
      "arrival_s,tenant,conversation,static_tokens,own_tokens,output_tokens\n"
      "0,acme,,100,50,10\n"
      "0.5,acme,c1,100,20,30\n"
      "1,blue,,100,50,10\n"
      "2,acme,c1,100,70,5\n");
  ASSERT_EQ(trace.sessions.size(), 3u);
  const auto a = ChainsOf(trace, 0)[0], c1 = ChainsOf(trace, 1)[0], c2 = ChainsOf(trace, 1)[1];
  EXPECT_EQ(CommonBlocks(a, c1), 2u);
  EXPECT_EQ(CommonBlocks(a, ChainsOf(trace, 2)[0]), 0u);
  EXPECT_EQ(CommonBlocks(c1, c2), 3u);
  const auto turns = trace.TurnsOf(trace.sessions[1]);
  EXPECT_EQ(turns[1].input_tokens, 100u + 20 + 30 + 70);
  EXPECT_EQ(turns[1].k1_end, 2u);
  EXPECT_EQ(turns[1].k2_end, 3u);
  EXPECT_EQ(trace.sessions[0].tenant, trace.sessions[1].tenant);
  EXPECT_NE(trace.sessions[0].tenant, trace.sessions[2].tenant);
}

struct BadTrace {
  std::string text, says;
};

TEST(TraceParse, ErrorsNameLineFieldAndValue) {
  const std::string good = R"({"timestamp": 0, "input_length": 9, "hash_ids": [1]})";
  const std::array<BadTrace, 13> bad = {{
      {"", "t: holds no request"},
      {"hello", "t:1: `hello` begins no trace format"},
      {good + "\n\n{\"timestamp\": 0, \"input_length\": -3}", "t:3: input_length is -3"},
      {good + "\n{\"timestamp\": 0}", "t:2: input_length is missing"},
      {good + "\n[]", "t:2: `[]` is no JSON object"},
      {good + "\n{\"timestamp\": -1, \"input_length\": 9}", "t:2: timestamp is -1"},
      {good + "\n{\"timestamp\": 1, \"input_length\": 9, \"hash_ids\": [1, 2]}",
       "t:2: hash_ids has 2 entries, but input_length 9 has 1 blocks of 512"},
      {good + "\n{\"timestamp\": 1, \"input_length\": 9, \"hash_ids\": [\"x\"]}",
       "t:2: hash_ids is \"x\""},
      {std::string(kClaudeHead) +
           R"({"type": "n", "model": "m", "in": 640, "out": 1, "keep": 0, "add": [[1, 2]]}]})",
       "t:1: keep and add give 2 blocks for `in` of 640 tokens"},
      {std::string(kClaudeHead) +
           R"({"type": "n", "model": "m", "in": 64, "out": 1, "keep": 7, "add": [[1, 1]]}]})",
       "t:1: keep is 7"},
      {"TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,2", "t:2: TIMESTAMP is `yesterday`"},
      {"TIMESTAMP,ContextTokens,GeneratedTokens\n4046-12-31 23:59:59,1,2",
       "t:2: TIMESTAMP is `4046"},
      {"arrival_s,tenant,conversation,static_tokens,own_tokens,output_tokens\n0,a,,1e3,1,1",
       "t:2: static_tokens is `1e3`"},
  }};
  for (const BadTrace& b : bad) {
    const auto trace = ParseTrace(b.text);
    ASSERT_FALSE(trace) << b.text;
    EXPECT_EQ(trace.error().code, Code::kInvalidArgument);
    EXPECT_THAT(trace.error().what, HasSubstr(b.says));
  }
}

TEST(TraceParse, ReadsPlainAndGzipFilesAlike) {
  const std::string text = R"({"timestamp": 0, "input_length": 9, "hash_ids": [1]})";
  const std::string plain = testing::TempDir() + "trace_plain.jsonl";
  std::ofstream(plain) << text << "\n" << text;  // no newline at the end
  const std::string packed = testing::TempDir() + "trace_packed.jsonl.gz";
  gzFile file = gzopen(packed.c_str(), "wb");
  gzputs(file, (text + "\n" + text).c_str());
  gzclose(file);
  for (const std::string& path : {plain, packed}) {
    const auto trace = ReadTrace(path);
    ASSERT_TRUE(trace) << trace.error().what;
    EXPECT_EQ(trace->turns.size(), 2u);
  }
  EXPECT_EQ(ReadTrace("/no/such/file").error().code, Code::kNotFound);
}

TEST(TraceParse, BrokenGzipIsDataLoss) {
  const std::string path = testing::TempDir() + "trace_broken.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  gzputs(file, R"({"timestamp": 0, "input_length": 9, "hash_ids": [1]})");
  gzclose(file);
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::ofstream(path, std::ios::binary) << bytes.substr(0, bytes.size() - 12);
  EXPECT_EQ(ReadTrace(path).error().code, Code::kDataLoss);
}

}  // namespace
}  // namespace hidane::sim
