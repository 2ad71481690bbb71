#include "load/answer.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace hidane::load {
namespace {

using std::chrono::milliseconds;

class AnswerTest : public ::testing::Test {
 protected:
  void After(int64_t ms, std::string_view data) {
    clock_.Advance(milliseconds(ms));
    reader_.OnEvent(data, clock_.Now());
  }
  ManualClock clock_;
  Outcome outcome_;
  AnswerReader reader_{outcome_};
};

TEST_F(AnswerTest, FirstTextNotTheRoleIsTheFirstToken) {
  After(10, R"({"choices":[{"delta":{"role":"assistant","content":""}}]})");
  After(10, R"({"choices":[{"delta":{"content":"Hel"}}]})");
  After(10, R"({"choices":[{"delta":{"content":"lo"}}]})");
  After(10, R"({"choices":[{"delta":{},"finish_reason":"stop"}]})");
  After(10, R"({"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":2,
                "prompt_tokens_details":{"cached_tokens":48}}})");
  After(10, "[DONE]");
  reader_.OnEnd(clock_.Now());
  EXPECT_EQ(outcome_.end, End::kOk);
  EXPECT_EQ(outcome_.first, milliseconds(20));
  EXPECT_EQ(outcome_.last, milliseconds(30));
  EXPECT_EQ(outcome_.done, milliseconds(60));
  EXPECT_EQ(outcome_.prompt_tokens, 50u);
  EXPECT_EQ(outcome_.cached_tokens, 48u);
  EXPECT_EQ(outcome_.completion_tokens, 2u);
}

TEST_F(AnswerTest, ToolCallsAndReasoningAreTextToo) {
  After(5, R"({"choices":[{"delta":{"tool_calls":[{"index":0}]}}]})");
  EXPECT_EQ(outcome_.first, milliseconds(5));
}

TEST_F(AnswerTest, NullUsageIsNoUsage) {
  After(5, R"({"choices":[{"delta":{"content":"x"}}],"usage":null})");
  EXPECT_FALSE(outcome_.usage_seen);
}

TEST_F(AnswerTest, AnEndWithoutDoneIsACut) {
  After(5, R"({"choices":[{"delta":{"content":"x"}}]})");
  reader_.OnEnd(clock_.Now());
  EXPECT_EQ(outcome_.end, End::kCut);
}

TEST_F(AnswerTest, AnErrorEventStaysAnErrorEvenWithDone) {
  After(5, R"({"error":{"message":"worker died","type":"server_error"}})");
  After(5, "[DONE]");
  reader_.OnEnd(clock_.Now());
  EXPECT_EQ(outcome_.end, End::kErrorEvent);
  EXPECT_NE(outcome_.detail.find("worker died"), std::string::npos);
}

TEST_F(AnswerTest, NonsenseIsAProtocolError) {
  After(5, "{not json");
  reader_.OnEnd(clock_.Now());
  EXPECT_EQ(outcome_.end, End::kProtocol);
}

TEST(EndOfStatus, SortsRefusals) {
  EXPECT_EQ(EndOfStatus(429), End::kHttp429);
  EXPECT_EQ(EndOfStatus(400), End::kHttp4xx);
  EXPECT_EQ(EndOfStatus(503), End::kHttp5xx);
  EXPECT_EQ(EndOfStatus(302), End::kProtocol);
}

}  // namespace
}  // namespace hidane::load
