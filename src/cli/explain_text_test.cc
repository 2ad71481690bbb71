#include "cli/explain_text.h"

#include <gtest/gtest.h>

#include <string>

#include "cli/text_table.h"

namespace hidane::cli {
namespace {

std::string Candidate(const char* worker, bool chosen, int cached, double ttft_s) {
  return std::string(R"({"worker":")") + worker + R"(","chosen":)" + (chosen ? "true" : "false") +
         R"(,"cached_tokens":)" + std::to_string(cached) + R"(,"ttft_s":)" +
         std::to_string(ttft_s) +
         R"(,"wait_s":0.25,"prefill_s":0.5,"interference_s":0.01,"kv_wait_s":12.5})";
}

std::string Answer(const std::string& decision, const std::string& candidates,
                   const std::string& more = "") {
  return R"({"worker":"w0","decision":")" + decision +
         R"(","policy":"prefix","cached_expected":2200,"ttft_s":0.9,"flight":"go","follow_s":0,)"
         R"("prompt":{"model":"m","body_bytes":9412,"tokens":2350,"static_tokens":2200,)"
         R"("tools_tokens":1800,"system_tokens":400,"conversation_tokens":150,"messages":3},)"
         R"("candidates":[)" +
         candidates + R"(],"not_compared":[)" + more + "]}";
}

TEST(ExplainTextTest, SaysWhereWhatWhyAndWhatInstead) {
  const auto text = ExplainText(
      Answer("home", Candidate("w0", true, 2200, 0.9) + "," + Candidate("w11", false, 0, 1.2),
             R"({"worker":"w2","health":"up","draining":false},)"
             R"({"worker":"w3","health":"ejected","draining":false})"));
  ASSERT_TRUE(text);
  EXPECT_EQ(*text,
            "This request would go to w0. First token after about 900 ms; 2,200 of its tokens are "
            "cached there.\n"
            "\n"
            "The prompt: about 2,350 tokens for model m, estimated from 9,412 bytes.\n"
            "  tools         1,800\n"
            "  system text     400\n"
            "  conversation    150  3 messages in the body\n"
            "\n"
            "What was compared, as predicted now:\n"
            "    worker  cached   queue  prefill  neighbors  memory  first token\n"
            "->  w0       2,200  250 ms   500 ms      10 ms  12.5 s       900 ms\n"
            "    w11          0  250 ms   500 ms      10 ms  12.5 s      1200 ms\n"
            "cached: tokens of this prompt believed to be in the worker's KV cache. First token = "
            "queue (prompts\nsent there before) + prefill (the tokens not cached) + neighbors "
            "(answers that run beside it) + memory\n(until there is room).\n"
            "\n"
            "Why: w0 is the one home of these tools and system text: their cache is kept there. "
            "(home)\n"
            "Instead: w11 would answer 300 ms later and compute 2,200 tokens that are cached "
            "here.\n"
            "Not compared: w2, w3 (ejected). A prefix is kept at its homes, where its memory is "
            "set aside.\n");
}

TEST(ExplainTextTest, EveryRuleHasASentenceOfItsOwn) {
  std::string before;
  for (const char* rule : {"home", "balance", "sticky", "placed", "failover", "only", "policy"}) {
    const auto text = ExplainText(Answer(rule, Candidate("w0", true, 1, 1)));
    ASSERT_TRUE(text) << rule;
    const std::string why = text->substr(text->find("Why: "));
    EXPECT_NE(why.find(std::string("(") + rule + ")"), std::string::npos);
    EXPECT_NE(why.substr(0, why.find('(')), before);
    before = why.substr(0, why.find('('));
  }
}

TEST(ExplainTextTest, DecisionsShowWhatWasExpectedAndWhatCame) {
  const auto text = DecisionsText(
      R"({"decisions":[{"request_id":"abcdef0123456789","worker":"w0","status":200,"ttft_s":0.5,)"
      R"("usage":{"prompt_tokens":100,"cached_tokens":60,"completion_tokens":1},)"
      R"("regret":{"cached_tokens":20,"ttft_s":0.1},)"
      R"("decision":{"rule":"home","prompt_tokens":1100,"expected_cached":80,"ttft_s":0.4}},)"
      R"({"request_id":"b","worker":"w10","status":503,"ttft_s":0,"usage":null,"regret":null,)"
      R"("decision":{"rule":"placed","prompt_tokens":9,"expected_cached":0,"ttft_s":0.4}}]})");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->substr(0, text->find("Newest")),
            "request       worker  why     status  prompt  expected  cached  regret  predicted  "
            "first token\n"
            "abcdef012345  w0      home       200   1,100        80      60      20     400 ms    "
            "   500 ms\n"
            "b             w10     placed     503       9         0       -       -     400 ms    "
            "        -\n");
  EXPECT_EQ(*DecisionsText(R"({"decisions":[]})"), "No request has been routed yet.\n");
}

TEST(ExplainTextTest, WhatNoGatewayAnsweredIsAnError) {
  for (const char* json : {"", "[]", "{}", "<html>", R"({"prompt":1})"}) {
    EXPECT_FALSE(ExplainText(json).has_value()) << json;
    EXPECT_FALSE(DecisionsText(json).has_value()) << json;
  }
  EXPECT_EQ(ErrorMessage(R"({"error":{"message":"no model"}})"), "no model");
  EXPECT_EQ(ErrorMessage("<html>"), "<html>");
}

TEST(TextTableTest, ColumnsLineUpByCharactersNotBytes) {
  const Cells lines[] = {{"a", "b", "c"}, {"étage", "10", ""}};
  EXPECT_EQ(TextTable(lines, 1), "a       b  c\nétage  10\n");
}

}  // namespace
}  // namespace hidane::cli
