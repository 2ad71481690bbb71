#include "gateway/static_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hidane::gateway {
namespace {

using prompt::Api;
using testing::Eq;
using testing::Optional;

TEST(RefreshBodyTest, KeepsWhatLaysThePromptOutAndAsksForOneToken) {
  EXPECT_THAT(
      RefreshBody(Api::kChat, R"({
      "model": "m", "stream": true, "stream_options": {"include_usage": true},
      "messages": [{"role": "system", "content": "You \"are\""}, {"role": "user", "content": "Hi"},
                   {"role": "system", "content": "late"}],
      "tools": [ {"type": "function"} ], "max_tokens": 900, "n": 2, "temperature": 0.5,
      "chat_template_kwargs": {"thinking": true}, "odd\"key": 1})"),
      Optional(Eq(R"({"model":"m","messages":[{"role": "system", "content": "You \"are\""},)"
                  R"({"role":"user","content":"."}],"tools":[ {"type": "function"} ],)"
                  R"("temperature":0.5,"chat_template_kwargs":{"thinking": true},)"
                  R"("odd\"key":1,"max_tokens":1})")));
}

TEST(RefreshBodyTest, OfAnthropicsFormTheSystemTextIsAFieldOfItsOwn) {
  EXPECT_THAT(RefreshBody(Api::kMessages, R"({"model":"m","system":"S","max_tokens":9,
                                      "messages":[{"role":"user","content":"Hi"}]})"),
              Optional(Eq(R"({"model":"m","system":"S",)"
                          R"("messages":[{"role":"user","content":"."}],"max_tokens":1})")));
}

TEST(RefreshBodyTest, OtherFormsAndWhatIsNoJsonHaveNone) {
  EXPECT_EQ(RefreshBody(Api::kCompletions, R"({"model":"m","prompt":"P"})"), std::nullopt);
  EXPECT_EQ(RefreshBody(Api::kChat, R"({"model":"m"})"), std::nullopt);
  EXPECT_EQ(RefreshBody(Api::kChat, R"({"messages":"none"})"), std::nullopt);
  EXPECT_EQ(RefreshBody(Api::kChat, "{"), std::nullopt);
  EXPECT_EQ(RefreshBody(Api::kChat, R"({"messages":[)"), std::nullopt);
  EXPECT_EQ(RefreshBody(Api::kChat, ""), std::nullopt);
}

// The prefix of the refresh is the client's, as the gateway reads it.
TEST(RefreshBodyTest, HasThePrefixOfTheBodyThatItIsMadeOf) {
  const auto read = [](std::string body) {
    prompt::BodyReader reader;
    prompt::Body out;
    const size_t size = body.size();
    body.resize(size + prompt::BodyReader::kPadding);
    EXPECT_TRUE(
        reader.Read(Api::kChat, std::string_view(body).substr(0, size), body.size(), {}, out));
    return out.identity;
  };
  const std::string body = R"({"model":"m","messages":[{"role":"developer","content":"S\u00e9"},)"
                           R"({"role":"user","content":"Hi"}],"tools":[{"a":1.50,"b":"\/"}]})";
  const auto refresh = RefreshBody(Api::kChat, body);
  ASSERT_TRUE(refresh);
  const prompt::Identity of = read(body), again = read(*refresh);
  EXPECT_GT(of.k1_end, 0u);
  EXPECT_EQ(of.StaticPart().chain.size(), of.k1_end);
  EXPECT_NE(of.k2(), again.k2());
  EXPECT_EQ(of.k1_end, again.k1_end);
  EXPECT_EQ(of.k1(), again.k1());
}

StaticPart Part(size_t bytes) {
  return {.target = "/v1/chat/completions", .body = std::string(bytes, 'x'), .identity = {}};
}

TEST(StaticPartsTest, TheLeastRecentlyPutLeavesBeyondTheBound) {
  StaticParts parts(100);
  parts.Put(1, Part(40));
  parts.Put(2, Part(40));
  const auto held = parts.Find(1);
  parts.Put(3, Part(40));
  EXPECT_FALSE(parts.Knows(1));
  EXPECT_TRUE(parts.Knows(2) && parts.Knows(3));
  EXPECT_EQ(held->body.size(), 40u) << "who uses it keeps it";
}

TEST(StaticPartsTest, WhatIsLargerThanTheBoundIsNotKept) {
  StaticParts parts(100);
  parts.Put(1, Part(40));
  parts.Put(2, Part(101));
  EXPECT_TRUE(parts.Knows(1));
  EXPECT_EQ(parts.Find(2), nullptr);
}

}  // namespace
}  // namespace hidane::gateway
