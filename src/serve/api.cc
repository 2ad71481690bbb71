#include "serve/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error_map.h"
#include "base/rng.h"

namespace hidane::serve {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kExposition = "text/plain; version=0.0.4; charset=utf-8";
constexpr int kRetryAfterS = 1;

/// Bytes of messages, tools and prompt that are tokenized on the I/O thread: about 2 ms.
constexpr size_t kInlineBytesMax = 8 << 10;
constexpr uint32_t kCompletionTokensDefault = 16;

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

/// A request that the engine has taken: listed while it runs, cancelled when its handler is left,
/// for whatever reason.
class Api::Running {
 public:
  Running(Api& api, SeqId id) : api_(api), id_(id) { api_.running_.push_back(id_); }
  ~Running() {
    std::erase(api_.running_, id_);
    api_.engine_.Cancel(id_);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Api& api_;
  SeqId id_;
};

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

engine::Request Api::EngineRequest(const ApiRequest& request, Endpoint endpoint,
                                   std::vector<TokenId> prompt) const {
  const engine::EngineStats stats = engine_.stats();
  const uint64_t room =
      std::min<uint64_t>(limits_.context_length, uint64_t{stats.kv_blocks} * stats.block_size);
  const auto left = static_cast<uint32_t>(room > prompt.size() ? room - prompt.size() : 1);
  const uint32_t unasked = endpoint == Endpoint::kChat ? left : kCompletionTokensDefault;
  engine::Request out{.prompt = std::move(prompt),
                      .max_tokens = request.max_tokens.value_or(unasked),
                      .sampling = request.sampling,
                      .stop_token_ids = request.stop_token_ids,
                      .cache_salt = request.cache_salt,
                      .ignore_eos = request.ignore_eos,
                      .kv_policy = request.kv_policy};
  // The chosen token's own log-probability comes only with at least one of the top ones.
  if (request.logprobs) out.logprobs = std::max(request.top_logprobs, 1u);
  return out;
}

net::Task<> Api::Generate(net::Exchange& x, Endpoint endpoint) {
  auto parsed = co_await Read(x, endpoint);
  if (!parsed) co_return co_await Refuse(x, std::move(parsed).error());
  const auto request = std::make_shared<const ApiRequest>(*std::move(parsed));
  auto tokens = co_await PromptTokens(x.loop(), request);
  if (!tokens) co_return co_await Refuse(x, std::move(tokens).error());

  Events events(x.loop());
  auto sink = [sender = events.sender()](const engine::Event& e) { sender.Send(e); };
  const auto id =
      engine_.Submit(EngineRequest(*request, endpoint, *std::move(tokens)), std::move(sink));
  if (!id) co_return co_await Refuse(x, id.error());
  const Running running(*this, *id);
  x.OnDisconnect([&engine = engine_, id = *id] { engine.Cancel(id); });

  ResponseWriter::Identity identity{.endpoint = endpoint,
                                    .id = NewId(endpoint),
                                    .model = options_.model_id,
                                    .created_unix_s = text::SystemUnixSeconds()};
  ResponseWriter writer(std::move(identity), text_, request->logprobs, request->include_usage);
  if (request->stream) {
    co_await Stream(x, *request, events, std::move(writer));
  } else {
    co_await Collect(x, *request, events, std::move(writer));
  }
}

net::Task<> Api::Stream(net::Exchange& x, const ApiRequest& request, Events& events,
                        ResponseWriter writer) {
  Answer answer(request, text_);
  bool begun = false;
  while (!answer.done()) {
    const auto batch = co_await events.Receive();
    std::string out;
    for (const engine::Event& event : batch) {
      if (answer.done()) break;
      answer.Push(event);
      const std::string text = answer.TakeText();
      const auto scored = answer.TakeScored();
      if (!text.empty() || !scored.empty()) out += writer.Delta(text, scored);
    }
    if (!begun) {
      // The head waits for the first event, so that what fails before it still has a status.
      if (x.disconnected()) co_return;
      if (answer.failed()) {
        Error error = answer.error();
        co_return co_await Refuse(x, std::move(error));
      }
      net::ResponseHead head;
      head.headers.Add("content-type", "text/event-stream; charset=utf-8");
      head.headers.Add("cache-control", "no-cache");
      x.WriteHead(std::move(head));
      Count(200);
      begun = true;
      if (!request.messages.empty()) out.insert(0, writer.First());
    }
    if (answer.failed()) {
      out += ResponseWriter::ErrorEvent(answer.error());
    } else if (answer.done()) {
      out += writer.Last(answer.finish_reason());
      if (request.include_usage) out += writer.UsageEvent(answer.usage());
      out += ResponseWriter::Done();
    }
    if (answer.done() && !answer.failed()) {
      // An error here means that the client is gone: there is nobody left to tell.
      [[maybe_unused]] const auto finished = co_await x.Finish(out);
      co_return;
    }
    const auto written = co_await x.Write(out);
    if (!written) co_return;
  }
  x.Abort();
}

net::Task<> Api::Collect(net::Exchange& x, const ApiRequest& request, Events& events,
                         ResponseWriter writer) {
  Answer answer(request, text_);
  while (!answer.done()) {
    const auto batch = co_await events.Receive();
    for (const engine::Event& event : batch) {
      if (!answer.done()) answer.Push(event);
    }
  }
  if (x.disconnected()) co_return;
  if (answer.failed()) {
    Error error = answer.error();
    co_return co_await Refuse(x, std::move(error));
  }
  const std::string text = answer.TakeText();
  const auto scored = answer.TakeScored();
  co_await Json(x, writer.Whole(text, answer.finish_reason(), scored, answer.usage()));
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

std::string Api::NewId(Endpoint endpoint) {
  const std::string_view kind = endpoint == Endpoint::kChat ? "chatcmpl" : "cmpl";
  return fmt::format("{}-{:016x}", kind, Mix64(next_id_++));
}

}  // namespace hidane::serve
