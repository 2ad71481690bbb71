#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/rng.h"
#include "serve/api.h"
#include "serve/choices.h"

/// Api's chats and completions: from the checked request to the last byte of its answers.
namespace hidane::serve {
namespace {

constexpr uint32_t kCompletionTokensDefault = 16;

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

engine::Request Api::EngineRequest(const ApiRequest& request, Endpoint endpoint,
                                   std::vector<TokenId> prompt) const {
  const uint32_t left = std::max(1u, engine_.MaxTokens(prompt.size(), request.kv_policy));
  const uint32_t unasked = endpoint == Endpoint::kChat ? left : kCompletionTokensDefault;
  engine::Request out{.prompt = std::move(prompt),
                      .max_tokens = request.max_tokens.value_or(unasked),
                      .sampling = request.sampling,
                      .stop_token_ids = request.stop_token_ids,
                      .cache_salt = request.cache_salt,
                      .ignore_eos = request.ignore_eos,
                      .kv_policy = request.kv_policy,
                      .choices = request.n};
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
    co_await Stream(x, *request, *id, events, std::move(writer));
  } else {
    co_await Collect(x, *request, *id, events, std::move(writer));
  }
}

Answer* Api::Push(SeqId id, const engine::Event& event, Choices& choices) {
  Answer* answer = choices.Push(event);
  if (answer == nullptr || !answer->done() || choices.done()) return answer;
  // After a stop string the engine would go on. (When all are over, the request is cancelled.)
  if (event.finish == engine::Finish::kNone) engine_.CancelChoice(id, event.choice);
  return answer;
}

std::string Api::Chunks(SeqId id, std::span<const engine::Event> events, Choices& choices,
                        ResponseWriter& writer) {
  std::string out;
  for (const engine::Event& event : events) {
    if (choices.done()) break;
    Answer* answer = Push(id, event, choices);
    if (answer == nullptr) continue;
    const std::string text = answer->TakeText();
    const auto scored = answer->TakeScored();
    if (!text.empty() || !scored.empty()) out += writer.Delta(event.choice, text, scored);
    const std::string_view reason = answer->finish_reason();
    if (!reason.empty()) out += writer.Last(event.choice, reason);
  }
  return out;
}

std::string Api::BeginStream(net::Exchange& x, const ApiRequest& request, ResponseWriter& writer) {
  net::ResponseHead head;
  head.headers.Add("content-type", "text/event-stream; charset=utf-8");
  head.headers.Add("cache-control", "no-cache");
  x.WriteHead(std::move(head));
  Count(200);
  std::string out;
  const uint32_t chats = request.messages.empty() ? 0 : request.n;
  for (uint32_t i = 0; i < chats; ++i) out += writer.First(i);
  return out;
}

net::Task<> Api::Stream(net::Exchange& x, const ApiRequest& request, SeqId id, Events& events,
                        ResponseWriter writer) {
  Choices choices(request, text_);
  bool begun = false;
  while (!choices.done()) {
    const auto batch = co_await events.Receive();
    std::string out = Chunks(id, batch, choices, writer);
    if (!begun) {
      // The head waits for the first event, so that what fails before it still has a status.
      if (x.disconnected()) co_return;
      if (choices.failed()) {
        Error error = choices.error();
        co_return co_await Refuse(x, std::move(error));
      }
      out.insert(0, BeginStream(x, request, writer));
      begun = true;
    }
    if (choices.failed()) {
      out += ResponseWriter::ErrorEvent(choices.error());
    } else if (choices.done()) {
      if (request.include_usage) out += writer.UsageEvent(choices.usage());
      out += ResponseWriter::Done();
      // An error here means that the client is gone: there is nobody left to tell.
      [[maybe_unused]] const auto finished = co_await x.Finish(out);
      co_return;
    }
    const auto written = co_await x.Write(out);
    if (!written) co_return;
  }
  x.Abort();
}

net::Task<> Api::Collect(net::Exchange& x, const ApiRequest& request, SeqId id, Events& events,
                         ResponseWriter writer) {
  Choices choices(request, text_);
  while (!choices.done()) {
    const auto batch = co_await events.Receive();
    for (const engine::Event& event : batch) {
      if (!choices.done()) Push(id, event, choices);
    }
  }
  if (x.disconnected()) co_return;
  if (choices.failed()) {
    Error error = choices.error();
    co_return co_await Refuse(x, std::move(error));
  }
  std::vector<ResponseWriter::Choice> whole;
  for (Answer& answer : choices.answers()) {
    whole.push_back({answer.TakeText(), answer.finish_reason(), answer.TakeScored()});
  }
  co_await Json(x, writer.Whole(whole, choices.usage()));
}

std::string Api::NewId(Endpoint endpoint) {
  const std::string_view kind = endpoint == Endpoint::kChat ? "chatcmpl" : "cmpl";
  return fmt::format("{}-{:016x}", kind, Mix64(next_id_++));
}

}  // namespace hidane::serve
