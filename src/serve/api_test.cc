#include "serve/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "text/tiny_vocab.h"

namespace hidane::serve {
namespace {

using engine::Event;
using engine::Finish;
using ::testing::HasSubstr;
using ::testing::Not;

/// Answers every request with a script, or keeps it until it is cancelled.
class FakeEngine final : public engine::Engine {
 public:
  FakeEngine() { info_.context_length = 128; }

  Result<SeqId> Submit(engine::Request request, engine::Sink sink) override {
    if (refusal) return Fail(*refusal);
    last = std::move(request);
    sink_ = std::move(sink);
    for (const Event& event : script) sink_(event);
    return SeqId(7);
  }
  void Cancel(SeqId id) override {
    cancelled.push_back(id);
    Event event;
    event.finish = Finish::kCancelled;
    if (sink_) sink_(event);
    sink_ = nullptr;
  }
  void CancelChoice(SeqId, uint32_t choice) override { cancelled_choices.push_back(choice); }
  uint32_t MaxTokens(uint64_t prompt_tokens,
                     const std::optional<engine::KvPolicy>& policy) const override {
    return policy ? policy->budget : static_cast<uint32_t>(64 - prompt_tokens);
  }
  void ResetPrefixCache() override { ++resets; }
  void ReadKv(std::function<void(engine::KvMap)> done) override { done(map); }
  engine::EngineStats stats() const override { return {.kv_blocks = 4, .block_size = 16}; }
  const model::ModelInfo& model_info() const override { return info_; }

  /// One token a byte; the last event carries `finish`.
  void Say(std::string_view bytes, Finish finish, uint32_t choice = 0) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      Event event;
      event.token = static_cast<uint8_t>(bytes[i]);
      event.choice = choice;
      event.prompt_tokens = 10;
      event.cached_tokens = 4;
      event.completion_tokens = static_cast<uint32_t>(i + 1);
      if (i + 1 == bytes.size()) event.finish = finish;
      script.push_back(event);
    }
  }
  static Event Failure() {
    Event event;
    event.finish = Finish::kError;
    event.error = "boom";
    return event;
  }
  void Emit(const Event& event) { sink_(event); }

  std::optional<Error> refusal;
  std::vector<Event> script;
  engine::Request last;
  std::vector<SeqId> cancelled;
  std::vector<uint32_t> cancelled_choices;
  engine::KvMap map;
  int resets = 0;

 private:
  model::ModelInfo info_{};
  engine::Sink sink_;
};

/// One request and what came back.
class FakeExchange final : public net::Exchange {
 public:
  FakeExchange(net::Loop& loop, std::string_view method, std::string_view target,
               std::string_view body)
      : loop_(loop), body_(body) {
    head_.method = method;
    head_.target = target;
  }

  const net::RequestHead& head() const override { return head_; }
  const net::Address& peer() const override { return peer_; }
  net::Loop& loop() override { return loop_; }
  net::Task<Result<net::Buffer>> ReadBody(size_t limit) override {
    if (body_.size() > limit) co_return Fail(Code::kTooLarge, "body");
    net::Buffer buffer;
    buffer.Append(body_);
    co_return buffer;
  }
  net::Task<Status> Respond(net::ResponseHead head, std::string_view body) override {
    response = std::move(head);
    answer = body;
    finished = true;
    co_return Status();
  }
  void WriteHead(net::ResponseHead head) override { response = std::move(head); }
  net::Task<Status> Write(std::string_view bytes) override {
    if (disconnected_) co_return Fail(Code::kCancelled, "a message too long to be kept in place");
    answer += bytes;
    co_return Status();
  }
  net::Task<Status> Flush() override { co_return Status(); }
  net::Task<Status> Finish(std::string_view last) override {
    answer += last;
    finished = true;
    co_return Status();
  }
  void Abort() override { aborted = true; }
  bool head_sent() const override { return response.status != 0; }
  bool disconnected() const override { return disconnected_; }
  void OnDisconnect(std::function<void()> fn) override { on_disconnect_ = std::move(fn); }

  void Disconnect() {
    disconnected_ = true;
    if (on_disconnect_) on_disconnect_();
  }

  net::ResponseHead response{.status = 0, .headers = {}, .body_size = {}};
  std::string answer;
  bool finished = false, aborted = false;

 private:
  net::Loop& loop_;
  net::RequestHead head_;
  net::Address peer_;
  std::string body_;
  bool disconnected_ = false;
  std::function<void()> on_disconnect_;
};

class ApiTest : public ::testing::Test {
 protected:
  ApiTest() : text_(*text::TextModel::Load(text::TinyVocab::ChatMl().source())) {
    options_.model_id = "m";
  }

  /// Lets one request run to its end; `meanwhile` runs once on the loop a little later.
  std::unique_ptr<FakeExchange> Call(std::string_view method, std::string_view target,
                                     std::string_view body,
                                     std::function<void(FakeExchange&)> meanwhile = {}) {
    auto x = std::make_unique<FakeExchange>(loop_, method, target, body);
    Api api(options_, engine_, *text_, registry_);
    net::Deadline later(loop_, [&] { meanwhile(*x); });
    if (meanwhile) later.Arm(std::chrono::milliseconds(2));
    loop_.Spawn(RunOne(api, *x, loop_));
    loop_.Run();
    return x;
  }
  static net::Task<> RunOne(Api& api, FakeExchange& x, net::Loop& loop) {
    co_await api.Handle(x);
    loop.Stop();
  }
  std::unique_ptr<FakeExchange> Chat(std::string_view more) {
    return Call(
        "POST", "/v1/chat/completions",
        R"({"model":"m","messages":[{"role":"user","content":"hi"}])" + std::string(more) + "}");
  }

  FakeEngine engine_;
  std::unique_ptr<text::TextModel> text_;
  obs::Registry registry_;
  ServeOptions options_;
  net::Loop loop_;
};

TEST_F(ApiTest, AChatIsAnsweredWhole) {
  engine_.Say("hello", Finish::kLength);
  const auto x = Chat("");
  EXPECT_EQ(x->response.status, 200);
  EXPECT_EQ(x->response.headers.Get("content-type"), "application/json");
  EXPECT_THAT(x->answer, HasSubstr(R"("content":"hello")"));
  EXPECT_THAT(x->answer, HasSubstr(R"("finish_reason":"length")"));
  EXPECT_THAT(x->answer, HasSubstr(R"("prompt_tokens_details":{"cached_tokens":4})"));
}

TEST_F(ApiTest, AChatIsStreamed) {
  engine_.Say("ab", Finish::kLength);
  const auto x = Chat(R"(,"stream":true,"stream_options":{"include_usage":true})");
  EXPECT_THAT(std::string(*x->response.headers.Get("content-type")),
              HasSubstr("text/event-stream"));
  const std::string& s = x->answer;
  const std::vector<std::string> parts = {R"("role":"assistant")",
                                          R"("content":"a")",
                                          R"("content":"b")",
                                          R"("finish_reason":"length")",
                                          R"("choices":[],"usage":{"prompt_tokens":10)",
                                          "data: [DONE]\n\n"};
  size_t at = 0;
  for (const std::string& part : parts) {
    at = s.find(part, at);
    ASSERT_NE(at, s.npos) << part << " not in order in " << s;
  }
  EXPECT_TRUE(x->finished);
  EXPECT_FALSE(x->aborted);
}

TEST_F(ApiTest, TheEngineGetsThePromptAndTheParameters) {
  engine_.Say("a", Finish::kLength);
  Chat(R"(,"max_tokens":5,"temperature":0,"seed":3,"cache_salt":"s","ignore_eos":true,
         "stop_token_ids":[9],"logprobs":true)");
  EXPECT_EQ(engine_.last.prompt,
            *text_->EncodeChat(R"([{"role":"user","content":"hi"}])", "", true));
  EXPECT_EQ(engine_.last.max_tokens, 5u);
  EXPECT_EQ(engine_.last.sampling.temperature, 0.0f);
  EXPECT_EQ(engine_.last.sampling.seed, 3u);
  EXPECT_EQ(engine_.last.cache_salt, "s");
  EXPECT_TRUE(engine_.last.ignore_eos);
  EXPECT_EQ(engine_.last.stop_token_ids, (std::vector<TokenId>{9}));
  EXPECT_EQ(engine_.last.logprobs, 1u) << "the chosen token's own needs one";
}

TEST_F(ApiTest, AChatWithoutALimitMayUseTheRoomThatIsLeft) {
  engine_.Say("a", Finish::kLength);
  Chat("");
  EXPECT_EQ(engine_.last.max_tokens, 64 - engine_.last.prompt.size());
  Chat(R"(,"kv_policy":{"name":"h2o","budget":50})");
  EXPECT_EQ(engine_.last.max_tokens, 50u) << "what its policy leaves";
}

TEST_F(ApiTest, SeveralChoicesComeWhole) {
  engine_.Say("one", Finish::kStop, 1);
  engine_.Say("zero", Finish::kLength, 0);
  const auto x = Chat(R"(,"n":2)");
  EXPECT_EQ(engine_.last.choices, 2u);
  EXPECT_THAT(x->answer,
              HasSubstr(R"({"index":0,"message":{"role":"assistant","content":"zero"})"));
  EXPECT_THAT(x->answer, HasSubstr(R"({"index":1,"message":{"role":"assistant","content":"on"})"));
  EXPECT_THAT(x->answer, HasSubstr(R"("prompt_tokens":10,"completion_tokens":7)"));
  EXPECT_THAT(x->answer, HasSubstr(R"("cached_tokens":4})"));
}

TEST_F(ApiTest, SeveralChoicesAreStreamedAsTheyComeAndEndEachByItself) {
  engine_.Say("a.", Finish::kNone, 1);
  engine_.Say("b", Finish::kLength, 0);
  engine_.Say("c", Finish::kLength, 2);
  const auto x = Chat(R"(,"n":3,"stop":".","stream":true,"stream_options":{"include_usage":true})");
  size_t at = 0;
  for (const char* part :
       {R"({"index":0,"delta":{"role")", R"({"index":1,"delta":{"role")",
        R"({"index":2,"delta":{"role")", R"({"index":1,"delta":{"content":"a"})",
        R"({"index":1,"delta":{},"logprobs":null,"finish_reason":"stop")",
        R"({"index":0,"delta":{"content":"b"})",
        R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"length")",
        R"({"index":2,"delta":{"content":"c"})", R"("completion_tokens":4)", "data: [DONE]\n\n"}) {
    at = x->answer.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << " not in order in " << x->answer;
  }
  EXPECT_THAT(engine_.cancelled_choices, ::testing::ElementsAre(1u));
}

TEST_F(ApiTest, ACompletionTakesTextOrTokens) {
  engine_.Say("a", Finish::kLength);
  Call("POST", "/v1/completions", R"({"model":"m","prompt":"x<|im_end|>"})");
  EXPECT_EQ(engine_.last.prompt, *text_->Encode("x<|im_end|>", true));
  EXPECT_EQ(engine_.last.max_tokens, 16u);
  const auto x = Call("POST", "/v1/completions", R"({"model":"m","prompt":[5,6]})");
  EXPECT_EQ(engine_.last.prompt, (std::vector<TokenId>{5, 6}));
  EXPECT_THAT(x->answer, HasSubstr(R"("text":"a")"));
}

TEST_F(ApiTest, ALongPromptIsTokenizedByThePool) {
  engine_.Say("a", Finish::kLength);
  const std::string prompt(100'000, 'x');
  Call("POST", "/v1/completions", R"({"model":"m","prompt":")" + prompt + "\"}");
  EXPECT_EQ(engine_.last.prompt, *text_->Encode(prompt, true));
}

TEST_F(ApiTest, AFullTokenizerQueueIsATooManyRequests) {
  options_.tokenizer_queue_max = 0;
  const auto x = Call("POST", "/v1/completions",
                      R"({"model":"m","prompt":")" + std::string(100'000, 'x') + "\"}");
  EXPECT_EQ(x->response.status, 429);
  EXPECT_EQ(x->response.headers.Get("retry-after"), "1");
}

TEST_F(ApiTest, AStopStringCancelsTheEngine) {
  engine_.Say("one STOP two", Finish::kNone);
  const auto x = Chat(R"(,"stop":"STOP","stream":true)");
  EXPECT_THAT(x->answer, HasSubstr(R"("finish_reason":"stop")"));
  EXPECT_THAT(x->answer, Not(HasSubstr("STOP")));
  EXPECT_THAT(x->answer, Not(HasSubstr("two")));
  EXPECT_THAT(engine_.cancelled, ::testing::Contains(SeqId(7)));
}

TEST_F(ApiTest, AClientThatLeavesCancelsItsRequest) {
  for (const char* more : {"", R"(,"stream":true)"}) {
    engine_.cancelled.clear();
    auto body = R"({"model":"m","messages":[{"role":"user"}])" + std::string(more) + "}";
    const auto x = Call("POST", "/v1/chat/completions", body,
                        [](FakeExchange& exchange) { exchange.Disconnect(); });
    EXPECT_THAT(engine_.cancelled, ::testing::Contains(SeqId(7)));
  }
}

TEST_F(ApiTest, AStreamWhoseClientTakesNothingMoreEnds) {
  engine_.Say("a", Finish::kNone);
  Call("POST", "/v1/completions", R"({"model":"m","prompt":"x","stream":true})",
       [this](FakeExchange& exchange) {
         exchange.OnDisconnect(nullptr);  // it learns of it from the write alone
         exchange.Disconnect();
         engine_.Emit(engine_.script.front());
       });
  EXPECT_THAT(engine_.cancelled, ::testing::Contains(SeqId(7)));
}

TEST_F(ApiTest, AFullQueueIsATooManyRequests) {
  engine_.refusal = Error{Code::kResourceExhausted, "the queue is full", {}};
  const auto x = Chat("");
  EXPECT_EQ(x->response.status, 429);
  EXPECT_EQ(x->response.headers.Get("retry-after"), "1");
}

TEST_F(ApiTest, WhatFailsBeforeTheFirstByteHasAStatus) {
  engine_.script = {FakeEngine::Failure()};
  EXPECT_EQ(Chat("")->response.status, 500);
  EXPECT_EQ(Chat(R"(,"stream":true)")->response.status, 500);
}

TEST_F(ApiTest, WhatFailsLaterIsAnErrorEventAndACut) {
  engine_.Say("a", Finish::kNone);
  const auto x = Call("POST", "/v1/chat/completions",
                      R"({"model":"m","messages":[{"role":"user"}],"stream":true})",
                      [this](FakeExchange&) { engine_.Emit(FakeEngine::Failure()); });
  EXPECT_EQ(x->response.status, 200);
  EXPECT_THAT(x->answer, HasSubstr("data: {\"error\":"));
  EXPECT_THAT(x->answer, Not(HasSubstr("[DONE]")));
  EXPECT_TRUE(x->aborted);
  EXPECT_FALSE(x->finished);
}

TEST_F(ApiTest, BadRequestsNameTheField) {
  const auto x = Chat(R"(,"n":129)");
  EXPECT_EQ(x->response.status, 400);
  EXPECT_THAT(x->answer, HasSubstr(R"("type":"invalid_request_error")"));
  EXPECT_THAT(x->answer, HasSubstr(R"("param":"n")"));
  EXPECT_THAT(
      Call("POST", "/v1/chat/completions", R"({"model":"m","messages":[{"role":1}]})")->answer,
      HasSubstr(R"("param":"messages[0].role")"));
}

TEST_F(ApiTest, AnotherModelIsNotFound) {
  const auto x = Call("POST", "/v1/completions", R"({"model":"../m","prompt":"x"})");
  EXPECT_EQ(x->response.status, 404);
  EXPECT_THAT(x->answer, HasSubstr(R"("param":"model")"));
}

TEST_F(ApiTest, ABodyOverTheLimitIsTooLarge) {
  options_.body_bytes_max = 10;
  EXPECT_EQ(Chat("")->response.status, 413);
}

TEST_F(ApiTest, UnknownRoutesAreNotFound) {
  EXPECT_EQ(Call("GET", "/v1/nothing", "")->response.status, 404);
  EXPECT_EQ(Call("GET", "/v1/chat/completions", "")->response.status, 404);
  EXPECT_EQ(Call("POST", "/metrics", "")->response.status, 404);
}

TEST_F(ApiTest, SmallRoutes) {
  EXPECT_EQ(Call("GET", "/health", "")->response.status, 200);
  EXPECT_EQ(Call("HEAD", "/health?x=1", "")->response.status, 200);
  EXPECT_THAT(Call("GET", "/v1/models", "")->answer, HasSubstr(R"("id":"m")"));
  EXPECT_THAT(Call("POST", "/tokenize", R"({"prompt":"a<|im_end|>"})")->answer,
              HasSubstr(R"("tokens":[97,)"));
  EXPECT_EQ(Call("POST", "/detokenize", R"({"tokens":[97,195]})")->answer,
            "{\"prompt\":\"a\uFFFD\"}");
  engine_.map.sequences.emplace_back().live = {100, 7};
  EXPECT_THAT(Call("GET", "/hidane/kv", "")->answer, HasSubstr(R"("live":[100,7])"));
  EXPECT_EQ(Call("POST", "/reset_prefix_cache", "")->response.status, 200);
  EXPECT_EQ(engine_.resets, 1);
}

TEST_F(ApiTest, AnswersAreCountedByStatus) {
  Call("GET", "/health", "");
  Call("GET", "/nothing", "");
  const auto x = Call("GET", "/metrics", "");
  EXPECT_THAT(x->answer, HasSubstr("hidane_serve_requests_total{status=\"2xx\"} 1"));
  EXPECT_THAT(x->answer, HasSubstr("hidane_serve_requests_total{status=\"4xx\"} 1"));
}

}  // namespace
}  // namespace hidane::serve
