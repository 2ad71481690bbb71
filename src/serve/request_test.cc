#include "serve/request.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace hidane::serve {
namespace {

constexpr RequestLimits kLimits{.vocab_size = 1000, .context_length = 8192};

/// A valid body with `fields` added.
std::string Chat(std::string_view fields) {
  return R"({"model":"m","messages":[{"role":"user","content":"x"}])" +
         (fields.empty() ? "" : "," + std::string(fields)) + "}";
}
std::string Completion(std::string_view fields) {
  return R"({"model":"m","prompt":"x")" + (fields.empty() ? "" : "," + std::string(fields)) + "}";
}

ApiRequest Parsed(Endpoint endpoint, std::string_view body) {
  auto request = ParseRequest(endpoint, body, kLimits);
  EXPECT_TRUE(request) << request.error().what << " in " << body;
  return request ? *std::move(request) : ApiRequest{};
}

/// The `param` of a refusal; "?" when the body is accepted.
std::string Param(Endpoint endpoint, std::string_view body) {
  const auto request = ParseRequest(endpoint, body, kLimits);
  if (request) return "?";
  EXPECT_EQ(request.error().code, Code::kInvalidArgument);
  return request.error().param;
}

std::string ChatParam(std::string_view fields) {
  return Param(Endpoint::kChat, Chat(fields));
}
std::string CompletionParam(std::string_view fields) {
  return Param(Endpoint::kCompletion, Completion(fields));
}

TEST(ParseRequest, ReadsAKvPolicy) {
  const ApiRequest r =
      Parsed(Endpoint::kCompletion,
             Completion(R"("kv_policy":{"name":"h2o","budget":512,"keep":0.5,"shared_prompt":7})"));
  ASSERT_TRUE(r.kv_policy);
  EXPECT_EQ(r.kv_policy->name, "h2o");
  EXPECT_EQ(r.kv_policy->budget, 512u);
  EXPECT_EQ(r.kv_policy->keep, 0.5);
  EXPECT_EQ(r.kv_policy->shared_prompt, 7u);
  EXPECT_EQ(r.kv_policy->mode, vtoken::Mode::kExact);
  EXPECT_EQ(Parsed(Endpoint::kChat, Chat(R"("kv_policy":{"name":"h2o","mode":"masked"})"))
                .kv_policy->mode,
            vtoken::Mode::kMasked);
  EXPECT_FALSE(Parsed(Endpoint::kChat, Chat("")).kv_policy);

  const auto param = [](std::string_view policy) {
    return ChatParam(R"("kv_policy":)" + std::string(policy));
  };
  EXPECT_EQ(param("1"), "kv_policy");
  EXPECT_EQ(param("{}"), "kv_policy.name");
  EXPECT_EQ(param(R"({"budget":5})"), "kv_policy.name");
  EXPECT_EQ(param(R"({"name":5})"), "kv_policy.name");
  EXPECT_EQ(param(R"({"name":"h2o","budget":0})"), "kv_policy.budget");
  EXPECT_EQ(param(R"({"name":"h2o","keep":1.5})"), "kv_policy.keep");
  EXPECT_EQ(param(R"({"name":"h2o","name":"tova"})"), "kv_policy.name");
  EXPECT_EQ(param(R"({"name":"h2o","window":3})"), "kv_policy.window");
  EXPECT_EQ(param(R"({"name":"h2o","mode":"fast"})"), "kv_policy.mode");
  EXPECT_EQ(param(R"({"name":"h2o","mode":1})"), "kv_policy.mode");
}

TEST(ParseRequest, ReadsAChat) {
  const ApiRequest r = Parsed(
      Endpoint::kChat,
      Chat(R"("tools":[{"type":"function"}],"max_tokens":7,"temperature":0.5,"top_p":0.9,"top_k":40,
              "seed":-1,"stop":["a","b"],"stop_token_ids":[3],"stream":true,"cache_salt":"s",
              "stream_options":{"include_usage":true},"logprobs":true,"top_logprobs":2,
              "ignore_eos":true,"user":"u","metadata":{"k":[1,null]})"));
  EXPECT_EQ(r.model, "m");
  EXPECT_EQ(r.messages, R"([{"role":"user","content":"x"}])");
  EXPECT_EQ(r.tools, R"([{"type":"function"}])");
  EXPECT_EQ(r.max_tokens, 7u);
  EXPECT_EQ(r.sampling.temperature, 0.5f);
  EXPECT_EQ(r.sampling.top_p, 0.9f);
  EXPECT_EQ(r.sampling.top_k, 40);
  EXPECT_TRUE(r.sampling.has_seed);
  EXPECT_EQ(r.sampling.seed, ~0ull);
  EXPECT_EQ(r.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(r.stop_token_ids, (std::vector<TokenId>{3}));
  EXPECT_EQ(r.cache_salt, "s");
  EXPECT_TRUE(r.stream && r.include_usage && r.ignore_eos && r.logprobs);
  EXPECT_EQ(r.top_logprobs, 2u);
}

TEST(ParseRequest, DefaultsAreThoseOfTheApi) {
  const ApiRequest r = Parsed(Endpoint::kChat, Chat(""));
  EXPECT_EQ(r.max_tokens, std::nullopt);
  EXPECT_EQ(r.sampling.temperature, 1.0f);
  EXPECT_FALSE(r.stream || r.include_usage || r.logprobs || r.sampling.has_seed);
  EXPECT_TRUE(r.tools.empty() && r.stop.empty());
}

TEST(ParseRequest, NullMeansAbsent) {
  const ApiRequest r = Parsed(
      Endpoint::kChat,
      Chat(R"("max_tokens":null,"stop":null,"tools":null,"stream_options":null,"n":null,"seed":null,
              "functions":null,"response_format":null,"temperature":null)"));
  EXPECT_EQ(r.max_tokens, std::nullopt);
  EXPECT_EQ(r.sampling.temperature, 1.0f);
}

TEST(ParseRequest, PromptForms) {
  const auto prompt = [](std::string_view json) {
    return Parsed(Endpoint::kCompletion, R"({"model":"m","prompt":)" + std::string(json) + "}");
  };
  EXPECT_EQ(prompt(R"("a\u00e9")").prompt, "a\u00e9");
  EXPECT_EQ(prompt(R"(["a"])").prompt, "a");
  EXPECT_EQ(prompt("[1,2]").tokens, (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(prompt("[[1,2]]").tokens, (std::vector<TokenId>{1, 2}));
}

TEST(ParseRequest, MaxCompletionTokensWins) {
  for (const char* fields : {R"("max_tokens":5,"max_completion_tokens":9)",
                             R"("max_completion_tokens":9,"max_tokens":5)"}) {
    EXPECT_EQ(Parsed(Endpoint::kChat, Chat(fields)).max_tokens, 9u);
  }
}

TEST(ParseRequest, ToolChoiceNoneAndNoToolsAreOne) {
  EXPECT_EQ(Parsed(Endpoint::kChat, Chat(R"("tool_choice":"none","tools":[{}])")).tools, "");
  EXPECT_EQ(Parsed(Endpoint::kChat, Chat(R"("tools":[ ])")).tools, "");
}

TEST(ParseRequest, SeveralChoicesAreAllThatAreMade) {
  EXPECT_EQ(Parsed(Endpoint::kChat, Chat("")).n, 1u);
  EXPECT_EQ(Parsed(Endpoint::kChat, Chat(R"("n":128)")).n, 128u);
  EXPECT_EQ(Parsed(Endpoint::kCompletion, Completion(R"("best_of":3,"n":3)")).n, 3u);
  EXPECT_EQ(CompletionParam(R"("n":2,"best_of":3)"), "best_of");
  EXPECT_EQ(CompletionParam(R"("n":2,"best_of":1)"), "best_of");
}

TEST(ParseRequest, CompletionLogprobsIsACount) {
  const ApiRequest r = Parsed(Endpoint::kCompletion, Completion(R"("logprobs":0)"));
  EXPECT_TRUE(r.logprobs);
  EXPECT_EQ(r.top_logprobs, 0u);
}

TEST(ParseRequest, TokenizeAndDetokenize) {
  EXPECT_EQ(Parsed(Endpoint::kTokenize, R"({"prompt":"a","add_special_tokens":false})")
                .add_special_tokens,
            false);
  EXPECT_EQ(Parsed(Endpoint::kTokenize, R"({"messages":[]})").messages, "[]");
  EXPECT_EQ(Parsed(Endpoint::kDetokenize, R"({"tokens":[1]})").tokens, (std::vector<TokenId>{1}));
  EXPECT_EQ(Param(Endpoint::kTokenize, "{}"), "prompt");
  EXPECT_EQ(Param(Endpoint::kDetokenize, R"({"tokens":[1000]})"), "tokens");
}

// Attack list J of the reliability study: each bad field is named.
TEST(ParseRequest, ABadFieldIsNamed) {
  for (const auto& [field, values] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"model", {"1", "\"" + std::string(257, 'm') + "\""}},
           {"messages", {"{}", "\"x\"", "[]", "[ ]"}},
           {"tools", {"{}", "1"}},
           {"tool_choice", {"\"required\"", "{}", "1"}},
           {"max_tokens", {"0", "-1", "8193", "1.0", "\"5\"", "99999999999999999999", "true"}},
           {"max_completion_tokens", {"0", "1e3"}},
           {"temperature", {"-0.1", "2.1", "1e400", "\"1\"", "NaN", "Infinity", "true"}},
           {"top_p", {"0", "1.1", "-1", "[]"}},
           {"top_k", {"-2", "1001", "1.5"}},
           {"seed", {"1.5", "\"x\"", "9223372036854775808"}},
           {"stop", {"1", "[1]", "\"\"", "[\"\"]", "{}", "\"" + std::string(1025, 's') + "\""}},
           {"stop_token_ids", {"[1000]", "[-1]", "7", "[1.5]"}},
           {"stream", {"\"true\"", "1"}},
           {"stream_options", {"1", "[]"}},
           {"logprobs", {"1", "\"x\""}},
           {"top_logprobs", {"21", "-1"}},
           {"cache_salt", {"\"\"", "1"}},
           {"ignore_eos", {"1"}},
           {"n", {"129", "0", "1e9", "1.5", "\"1\""}},
           {"best_of", {"2", "0", "129"}},
           {"presence_penalty", {"0.1"}},
           {"frequency_penalty", {"-2"}},
           {"repetition_penalty", {"1.1"}},
           {"min_p", {"0.1"}},
           {"min_tokens", {"1"}},
           {"logit_bias", {"{\"1\":1}", "[]"}},
           {"response_format", {"{\"type\":\"json_object\"}", "{}", "1"}},
           {"functions", {"[]"}},
           {"chat_template", {"\"x\""}},
           {"chat_template_kwargs", {"{}"}},
           {"prompt_embeds", {"\"x\""}},
       }) {
    for (const std::string& value : values) {
      std::string body = R"("max_x":1,")" + field + "\":" + value;
      if (field != "model") body += R"(,"model":"m")";
      if (field != "messages") body += R"(,"messages":[{"role":"user"}])";
      if (field == "top_logprobs") body += R"(,"logprobs":true)";
      EXPECT_EQ(Param(Endpoint::kChat, "{" + body + "}"), field) << value;
    }
  }
}

TEST(ParseRequest, ABadCompletionFieldIsNamed) {
  for (const char* prompt : {"1", "{}", "[]", "[1000]", "[-1]", "[1,\"a\"]", R"(["a","b"])",
                             "[[1],[2]]", "[[]]", "[null]", "[1.5]", "true"}) {
    const std::string body = R"({"model":"m","prompt":)" + std::string(prompt) + "}";
    EXPECT_EQ(Param(Endpoint::kCompletion, body), "prompt") << prompt;
  }
  EXPECT_EQ(CompletionParam(R"("logprobs":21)"), "logprobs");
  EXPECT_EQ(CompletionParam(R"("logprobs":true)"), "logprobs");
  EXPECT_EQ(CompletionParam(R"("echo":true)"), "echo");
  EXPECT_EQ(CompletionParam(R"("suffix":"x")"), "suffix");
  EXPECT_EQ(CompletionParam(R"("echo":false,"suffix":null)"), "?");
}

TEST(ParseRequest, RequiredFields) {
  EXPECT_EQ(Param(Endpoint::kChat, R"({"messages":[{}]})"), "model");
  EXPECT_EQ(Param(Endpoint::kChat, R"({"model":"m"})"), "messages");
  EXPECT_EQ(Param(Endpoint::kCompletion, R"({"model":"m"})"), "prompt");
  EXPECT_EQ(Param(Endpoint::kDetokenize, "{}"), "tokens");
}

TEST(ParseRequest, FieldsThatNeedAnother) {
  EXPECT_EQ(ChatParam(R"("stream_options":{"include_usage":true})"), "stream_options");
  EXPECT_EQ(ChatParam(R"("top_logprobs":2)"), "top_logprobs");
}

TEST(ParseRequest, AFieldGivenTwiceIsRefused) {
  EXPECT_EQ(ChatParam(R"("model":"other")"), "model");
  EXPECT_EQ(ChatParam(R"("mod\u0065l":"other")"), "model");
  EXPECT_EQ(ChatParam(R"("seed":1,"seed":1)"), "seed");
  EXPECT_EQ(ChatParam(R"("stream":true,"stream_options":{"include_usage":true,
                         "include_usage":false})"),
            "stream_options.include_usage");
  EXPECT_EQ(ChatParam(R"("user":1,"user":2)"), "?") << "nobody reads it";
}

TEST(ParseRequest, TooManyStops) {
  std::string stops = R"("a")";
  for (size_t i = 0; i < kStopsMax; ++i) stops += R"(,"a")";
  EXPECT_EQ(ChatParam("\"stop\":[" + stops + "]"), "stop");
}

TEST(ParseRequest, WhatIsNoJsonObjectIsRefused) {
  const std::string good = Chat("");
  for (const std::string& body : {std::string(),
                                  std::string("[]"),
                                  std::string("null"),
                                  std::string("\"x\""),
                                  std::string("{"),
                                  good + "x",
                                  good + "{}",
                                  "\xEF\xBB\xBF" + good,
                                  "/**/" + good,
                                  Chat(R"("x":)"),
                                  Chat(R"("x":tru)"),
                                  Chat(R"("x":[1,])"),
                                  Chat(R"("x":{"a"})"),
                                  Chat(R"("x":01)"),
                                  Chat(R"("x":NaN)"),
                                  Chat(R"("x":1e400)"),
                                  Chat("\"x\":\"\x01\""),
                                  Chat("\"x\":\"\xFF\""),
                                  Chat(R"("x":"\ud800")"),
                                  Chat(R"("x":)" + std::string(100000, '[')),
                                  std::string(100000, '{'),
                                  good.substr(0, good.size() - 1)}) {
    EXPECT_FALSE(ParseRequest(Endpoint::kChat, body, kLimits)) << body.substr(0, 100);
  }
}

RC_GTEST_PROP(ParseRequestProps, TheOrderOfFieldsDoesNotMatter, ()) {
  std::vector<std::string> fields = {R"("model":"m")",     R"("messages":[{}])", R"("seed":3)",
                                     R"("stream":true)",   R"("max_tokens":4)",  R"("top_k":5)",
                                     R"("logprobs":true)", R"("top_logprobs":1)"};
  const auto order = *rc::gen::arbitrary<uint64_t>();
  uint64_t state = order;
  for (size_t i = fields.size(); i > 1; --i) {
    state = state * 6364136223846793005u + 1;
    std::swap(fields[i - 1], fields[(state >> 33) % i]);
  }
  std::string body = "{";
  for (const auto& f : fields) body += (body.size() > 1 ? "," : "") + f;
  const auto r = ParseRequest(Endpoint::kChat, body + "}", kLimits);
  RC_ASSERT(r.has_value());
  RC_ASSERT(r->model == "m" && r->messages == "[{}]" && r->sampling.seed == 3 && r->stream);
  RC_ASSERT(r->max_tokens == 4u && r->sampling.top_k == 5 && r->top_logprobs == 1);
}

}  // namespace
}  // namespace hidane::serve
