#include "serve/answer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "serve/response.h"
#include "text/tiny_vocab.h"

namespace hidane::serve {
namespace {

using engine::Event;
using engine::Finish;

/// The tiny vocabulary: an id below 256 is that byte.
const text::TextModel& Text() {
  static const auto model = *text::TextModel::Load(text::TinyVocab::ChatMl().source());
  return *model;
}

Event Token(TokenId id, Finish finish = Finish::kNone) {
  Event e;
  e.token = id;
  e.finish = finish;
  return e;
}

std::string PushAll(Answer& answer, std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    if (answer.done()) break;
    answer.Push(Token(static_cast<uint8_t>(c)));
    out += answer.TakeText();
  }
  return out;
}

TEST(Answer, NeverShowsPartOfACodePoint) {
  Answer answer({}, Text());
  answer.Push(Token(0xC3));
  EXPECT_EQ(answer.TakeText(), "");
  answer.Push(Token(0xA9));
  EXPECT_EQ(answer.TakeText(), "\u00E9");
}

TEST(Answer, ACodePointCutByTheEndIsReplaced) {
  Answer answer({}, Text());
  answer.Push(Token('a'));
  answer.Push(Token(0xC3, Finish::kLength));
  EXPECT_EQ(answer.TakeText(), "a\uFFFD");
  EXPECT_EQ(answer.finish_reason(), "length");
}

TEST(Answer, AStopStringEndsIt) {
  ApiRequest request;
  request.stop = {"STOP"};
  Answer answer(request, Text());
  EXPECT_EQ(PushAll(answer, "some STOP here"), "some ");
  EXPECT_TRUE(answer.done());
  EXPECT_EQ(answer.finish_reason(), "stop");
}

TEST(Answer, HalfAStopStringIsShownAtTheEnd) {
  ApiRequest request;
  request.stop = {"STOP"};
  Answer answer(request, Text());
  EXPECT_EQ(PushAll(answer, "ST"), "");
  answer.Push(Token('O', Finish::kLength));
  EXPECT_EQ(answer.TakeText(), "STO");
  EXPECT_EQ(answer.finish_reason(), "length");
}

TEST(Answer, TheTokenThatStoppedIsNoText) {
  Answer answer({}, Text());
  answer.Push(Token('a'));
  answer.Push(Token('b', Finish::kStop));
  EXPECT_EQ(answer.TakeText(), "a");
  EXPECT_EQ(answer.finish_reason(), "stop");
}

TEST(Answer, FailuresHaveNoReasonButAnError) {
  for (const auto& [finish, code] : {std::pair{Finish::kError, Code::kInternal},
                                     std::pair{Finish::kCancelled, Code::kUnavailable}}) {
    Answer answer({}, Text());
    answer.Push(Token(-1, finish));
    EXPECT_TRUE(answer.done() && answer.failed());
    EXPECT_EQ(answer.finish_reason(), "");
    EXPECT_EQ(answer.error().code, code);
  }
}

TEST(Answer, ScoresEachTokenOfTheText) {
  ApiRequest request;
  request.logprobs = true;
  request.top_logprobs = 1;
  Answer answer(request, Text());
  Event e = Token('a');
  e.top = {{'a', -0.5f}, {'b', -0.25f}, {'a', -0.5f}};
  answer.Push(e);
  const auto scored = answer.TakeScored();
  ASSERT_EQ(scored.size(), 1u);
  EXPECT_EQ(scored[0].chosen.id, 'a');
  ASSERT_EQ(scored[0].top.size(), 1u);
  EXPECT_EQ(scored[0].top[0].id, 'b');
  EXPECT_TRUE(answer.TakeScored().empty());
}

// --- what goes over the wire ---

ResponseWriter Writer(Endpoint endpoint, bool logprobs = false, bool usage = false) {
  return {{.endpoint = endpoint, .id = "id-1", .model = "m", .created_unix_s = 7},
          Text(),
          logprobs,
          usage};
}

std::vector<ResponseWriter::Choice> One(std::string text, std::string_view reason) {
  return {{std::move(text), reason, {}}};
}

TEST(Response, WholeChat) {
  EXPECT_EQ(Writer(Endpoint::kChat).Whole(One("hi", "stop"), {10, 8, 2}),
            R"({"id":"id-1","object":"chat.completion","created":7,"model":"m","choices":[)"
            R"({"index":0,"message":{"role":"assistant","content":"hi"},"logprobs":null,)"
            R"("finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2,)"
            R"("total_tokens":12,"prompt_tokens_details":{"cached_tokens":8}}})");
}

TEST(Response, WholeCompletion) {
  EXPECT_EQ(Writer(Endpoint::kCompletion).Whole(One("hi", "length"), {}),
            R"({"id":"id-1","object":"text_completion","created":7,"model":"m","choices":[)"
            R"({"index":0,"text":"hi","logprobs":null,"finish_reason":"length"}],)"
            R"("usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,)"
            R"("prompt_tokens_details":{"cached_tokens":0}}})");
}

TEST(Response, ChatStream) {
  auto w = Writer(Endpoint::kChat);
  const std::string head =
      R"(data: {"id":"id-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[)";
  EXPECT_EQ(w.First(0), head + R"({"index":0,"delta":{"role":"assistant","content":""},)"
                               R"("logprobs":null,"finish_reason":null}]})"
                               "\n\n");
  EXPECT_EQ(w.Delta(0, "a\"", {}), head + R"({"index":0,"delta":{"content":"a\""},)"
                                          R"("logprobs":null,"finish_reason":null}]})"
                                          "\n\n");
  EXPECT_EQ(w.Last(0, "stop"), head + R"({"index":0,"delta":{},"logprobs":null,)"
                                      R"("finish_reason":"stop"}]})"
                                      "\n\n");
  EXPECT_EQ(ResponseWriter::Done(), "data: [DONE]\n\n");
}

TEST(Response, UsageComesOnceAndIsNullBefore) {
  auto w = Writer(Endpoint::kCompletion, false, true);
  EXPECT_NE(w.Delta(0, "a", {}).find(R"("usage":null)"), std::string::npos);
  EXPECT_EQ(w.UsageEvent({3, 0, 1}),
            R"(data: {"id":"id-1","object":"text_completion","created":7,"model":"m","choices":[],)"
            R"("usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4,)"
            R"("prompt_tokens_details":{"cached_tokens":0}}})"
            "\n\n");
}

TEST(Response, ChatLogprobs) {
  const ScoredToken scored[] = {{{'a', -0.5f}, {{0xC3, -1.0f}}}};
  EXPECT_NE(Writer(Endpoint::kChat, true)
                .Delta(0, "a", scored)
                .find(R"("logprobs":{"content":[{"token":"a","logprob":-0.5,"bytes":[97],)"
                      R"("top_logprobs":[{"token":")"
                      "\uFFFD"
                      R"(","logprob":-1,"bytes":[195]}]}]})"),
            std::string::npos);
}

TEST(Response, CompletionLogprobsCountOffsetsOverTheStream) {
  auto w = Writer(Endpoint::kCompletion, true);
  const ScoredToken first[] = {{{'a', -0.5f}, {}}, {{'b', -1.0f}, {{'c', -2.0f}}}};
  EXPECT_NE(w.Delta(0, "ab", first)
                .find(R"("logprobs":{"tokens":["a","b"],"token_logprobs":[-0.5,-1],)"
                      R"("top_logprobs":[{},{"c":-2}],"text_offset":[0,1]})"),
            std::string::npos);
  const ScoredToken second[] = {{{'d', -0.5f}, {}}};
  EXPECT_NE(w.Delta(0, "d", second).find(R"("text_offset":[2])"), std::string::npos);
}

TEST(Response, EachChoiceHasItsIndexAndItsOffsets) {
  auto w = Writer(Endpoint::kCompletion, true);
  const ScoredToken scored[] = {{{'a', -0.5f}, {}}, {{'b', -1.0f}, {}}};
  w.Delta(2, "ab", scored);
  const std::string other = w.Delta(0, "ab", scored), same = w.Delta(2, "ab", scored);
  EXPECT_NE(other.find(R"("choices":[{"index":0,)"), std::string::npos);
  EXPECT_NE(other.find(R"("text_offset":[0,1])"), std::string::npos);
  EXPECT_NE(same.find(R"("choices":[{"index":2,)"), std::string::npos);
  EXPECT_NE(same.find(R"("text_offset":[2,3])"), std::string::npos);
  const std::vector<ResponseWriter::Choice> two = {{"a", "stop", {}}, {"b", "length", {}}};
  EXPECT_NE(Writer(Endpoint::kCompletion)
                .Whole(two, {})
                .find(R"("choices":[{"index":0,"text":"a","logprobs":null,"finish_reason":"stop"},)"
                      R"({"index":1,"text":"b","logprobs":null,"finish_reason":"length"}])"),
            std::string::npos);
}

TEST(Response, ErrorEventHasTheErrorBody) {
  EXPECT_EQ(ResponseWriter::ErrorEvent({Code::kInternal, "x", {}}).find("data: {\"error\":{"), 0u);
}

TEST(Response, SmallBodies) {
  EXPECT_EQ(TokenizeBody(std::vector<TokenId>{1, 2}, 8192),
            R"({"count":2,"max_model_len":8192,"tokens":[1,2]})");
  EXPECT_EQ(DetokenizeBody("a"), R"({"prompt":"a"})");
  EXPECT_EQ(ModelsBody("m", 8192, 7),
            R"({"object":"list","data":[{"id":"m","object":"model","created":7,)"
            R"("owned_by":"hidane","max_model_len":8192}]})");
}

}  // namespace
}  // namespace hidane::serve
