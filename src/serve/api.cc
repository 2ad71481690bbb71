#include "serve/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error_map.h"

namespace hidane::serve {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kExposition = "text/plain; version=0.0.4; charset=utf-8";
constexpr int kRetryAfterS = 1;

/// Bytes of messages, tools and prompt that are tokenized on the I/O thread: about 2 ms.
constexpr size_t kInlineBytesMax = 8 << 10;

std::vector<TokenId> WithBos(TokenId bos, std::vector<TokenId> tokens) {
  if (bos >= 0) tokens.insert(tokens.begin(), bos);
  return tokens;
}

Result<std::vector<TokenId>> Encode(const text::TextModel& text, const ApiRequest& request) {
  if (!request.messages.empty()) {
    return text.EncodeChat(request.messages, request.tools, request.add_generation_prompt);
  }
  // A plain prompt is all the client's own: its control tokens are meant.
  auto tokens = text.Encode(request.prompt, /*parse_special=*/true);
  if (!tokens) return tokens;
  return WithBos(request.add_special_tokens ? text.bos() : -1, *std::move(tokens));
}

}  // namespace

struct Api::Route {
  std::string_view method, path;
  net::Task<> (Api::*handle)(net::Exchange&);
};

Api::Api(const ServeOptions& options, engine::Engine& engine, const text::TextModel& text,
         obs::Registry& registry)
    : options_(options),
      engine_(engine),
      text_(text),
      registry_(registry),
      limits_{.vocab_size = text.vocab_size(),
              .context_length = engine.model_info().context_length},
      started_unix_s_(text::SystemUnixSeconds()),
      next_id_(static_cast<uint64_t>(SteadyClock().Now().count())),
      tokenizer_(options.tokenizer_threads, options.tokenizer_queue_max) {
  constexpr std::string_view kClasses[] = {"2xx", "4xx", "5xx"};
  for (size_t i = 0; i < answered_.size(); ++i) {
    answered_[i] = &registry.counter("hidane_serve_requests_total", "Requests answered, by status.",
                                     {{"status", std::string(kClasses[i])}});
  }
}

net::Task<> Api::Handle(net::Exchange& x) {
  static constexpr Route kRoutes[] = {
      {"POST", "/v1/chat/completions", &Api::Chat},
      {"POST", "/v1/completions", &Api::Completion},
      {"GET", "/v1/models", &Api::Models},
      {"POST", "/tokenize", &Api::Tokenize},
      {"POST", "/detokenize", &Api::Detokenize},
      {"GET", "/health", &Api::Health},
      {"GET", "/metrics", &Api::Metrics},
      {"POST", "/reset_prefix_cache", &Api::ResetPrefixCache},
      {"GET", "/hidane/kv", &Api::Kv},
  };
  std::string_view method = x.head().method;
  if (method == "HEAD") method = "GET";
  for (const Route& route : kRoutes) {
    if (route.method == method && route.path == x.head().path()) return (this->*route.handle)(x);
  }
  return Refuse(
      x, {Code::kNotFound, fmt::format("no route {} {}", x.head().method, x.head().path()), {}});
}

void Api::CancelAll() {
  for (const SeqId id : running_) engine_.Cancel(id);
}

net::Task<> Api::Chat(net::Exchange& x) {
  return Generate(x, Endpoint::kChat);
}
net::Task<> Api::Completion(net::Exchange& x) {
  return Generate(x, Endpoint::kCompletion);
}

net::Task<> Api::Models(net::Exchange& x) {
  return Json(x, ModelsBody(options_.model_id, limits_.context_length, started_unix_s_));
}

net::Task<> Api::Tokenize(net::Exchange& x) {
  auto request = co_await Read(x, Endpoint::kTokenize);
  if (!request) co_return co_await Refuse(x, std::move(request).error());
  auto tokens = co_await PromptTokens(x.loop(), std::make_shared<ApiRequest>(*std::move(request)));
  if (!tokens) co_return co_await Refuse(x, std::move(tokens).error());
  co_await Json(x, TokenizeBody(*tokens, limits_.context_length));
}

net::Task<> Api::Detokenize(net::Exchange& x) {
  const auto request = co_await Read(x, Endpoint::kDetokenize);
  if (!request) co_return co_await Refuse(x, request.error());
  text::Utf8Stream utf8;
  std::string all;
  for (const TokenId id : request->tokens) all += utf8.Push(text_.TokenBytes(id));
  all += utf8.Flush();
  co_await Json(x, DetokenizeBody(all));
}

net::Task<> Api::Health(net::Exchange& x) {
  return Json(x, "{}");
}

net::Task<> Api::Metrics(net::Exchange& x) {
  return Reply(x, 200, kExposition, registry_.Scrape());
}

net::Task<> Api::Kv(net::Exchange& x) {
  Inbox<engine::KvMap> answers(x.loop());
  engine_.ReadKv([sender = answers.sender()](engine::KvMap map) { sender.Send(std::move(map)); });
  const auto maps = co_await answers.Receive();
  co_await Json(x, KvBody(maps.front()));
}

net::Task<> Api::ResetPrefixCache(net::Exchange& x) {
  engine_.ResetPrefixCache();
  return Json(x, "{}");
}

net::Task<Result<ApiRequest>> Api::Read(net::Exchange& x, Endpoint endpoint) {
  const auto body = co_await x.ReadBody(options_.body_bytes_max);
  if (!body) co_return Fail(body.error());
  auto request = ParseRequest(endpoint, body->view(), limits_);
  if (request && !request->model.empty() && request->model != options_.model_id) {
    co_return Fail(
        Code::kNotFound,
        fmt::format("no model \"{}\"; this engine has \"{}\"", request->model, options_.model_id),
        "model");
  }
  co_return request;
}

net::Task<Api::Tokens> Api::PromptTokens(net::Loop& loop,
                                         std::shared_ptr<const ApiRequest> request) {
  if (!request->tokens.empty()) co_return request->tokens;
  const size_t bytes = request->messages.size() + request->tools.size() + request->prompt.size();
  if (bytes <= kInlineBytesMax) co_return Encode(text_, *request);
  Inbox<Tokens> inbox(loop);
  auto job = [&text = text_, request, sender = inbox.sender()] {
    sender.Send(Encode(text, *request));
  };
  if (!tokenizer_.Submit(std::move(job))) {
    co_return Fail(Code::kResourceExhausted,
                   fmt::format("{} prompts wait for the tokenizer", options_.tokenizer_queue_max));
  }
  auto received = co_await inbox.Receive();
  co_return std::move(received.front());
}

net::Task<> Api::Reply(net::Exchange& x, int status, std::string_view type, std::string body) {
  net::ResponseHead head;
  head.status = status;
  head.headers.Add("content-type", type);
  if (status == 429) head.headers.Add("retry-after", fmt::to_string(kRetryAfterS));
  Count(status);
  // An error here means that the client is gone: there is nobody left to tell.
  [[maybe_unused]] const auto sent = co_await x.Respond(std::move(head), body);
}

net::Task<> Api::Json(net::Exchange& x, std::string body) {
  return Reply(x, 200, kJson, std::move(body));
}

net::Task<> Api::Refuse(net::Exchange& x, Error error) {
  return Reply(x, ToWire(error.code).http_status, kJson, ErrorBody(error));
}

void Api::Count(int status) {
  answered_[status < 400 ? 0 : status < 500 ? 1 : 2]->Add();
}

}  // namespace hidane::serve
