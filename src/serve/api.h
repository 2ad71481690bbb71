#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "net/server.h"
#include "net/task.h"
#include "obs/metrics.h"
#include "serve/choices.h"
#include "serve/inbox.h"
#include "serve/request.h"
#include "serve/response.h"
#include "serve/serve.h"
#include "serve/worker_pool.h"
#include "text/text.h"

namespace hidane::serve {

/// The routes of one engine: requests in, the engine's tokens out. Loop thread only. What it was
/// made of must outlive it, and it must outlive the loop.
class Api {
 public:
  Api(const ServeOptions& options, engine::Engine& engine, const text::TextModel& text,
      obs::Registry& registry);

  /// Answers one request, whatever it is.
  net::Task<> Handle(net::Exchange& x);
  /// Ends every running answer within one step: streams get an error event and are cut.
  void CancelAll();

 private:
  struct Route;
  class Running;
  using Events = Inbox<engine::Event>;
  using Tokens = Result<std::vector<TokenId>>;

  net::Task<> Chat(net::Exchange& x);
  net::Task<> Completion(net::Exchange& x);
  net::Task<> Models(net::Exchange& x);
  net::Task<> Tokenize(net::Exchange& x);
  net::Task<> Detokenize(net::Exchange& x);
  net::Task<> Health(net::Exchange& x);
  net::Task<> Metrics(net::Exchange& x);
  net::Task<> ResetPrefixCache(net::Exchange& x);
  net::Task<> Kv(net::Exchange& x);

  /// Reads and checks the body; kNotFound for another model's name.
  net::Task<Result<ApiRequest>> Read(net::Exchange& x, Endpoint endpoint);
  /// kResourceExhausted: too many prompts wait for the tokenizer.
  net::Task<Tokens> PromptTokens(net::Loop& loop, std::shared_ptr<const ApiRequest> request);
  net::Task<> Generate(net::Exchange& x, Endpoint endpoint);
  net::Task<> Stream(net::Exchange& x, const ApiRequest& request, SeqId id, Events& events,
                     ResponseWriter writer);
  net::Task<> Collect(net::Exchange& x, const ApiRequest& request, SeqId id, Events& events,
                      ResponseWriter writer);
  /// What an event adds to its answer, null if that was over.
  Answer* Push(SeqId id, const engine::Event& event, Choices& choices);
  std::string Chunks(SeqId id, std::span<const engine::Event> events, Choices& choices,
                     ResponseWriter& writer);
  std::string BeginStream(net::Exchange& x, const ApiRequest& request, ResponseWriter& writer);
  net::Task<> Reply(net::Exchange& x, int status, std::string_view type, std::string body);
  net::Task<> Json(net::Exchange& x, std::string body);
  net::Task<> Refuse(net::Exchange& x, Error error);
  void Count(int status);

  engine::Request EngineRequest(const ApiRequest& request, Endpoint endpoint,
                                std::vector<TokenId> prompt) const;
  std::string NewId(Endpoint endpoint);

  const ServeOptions& options_;
  engine::Engine& engine_;
  const text::TextModel& text_;
  obs::Registry& registry_;
  RequestLimits limits_;
  int64_t started_unix_s_;
  uint64_t next_id_;
  std::vector<SeqId> running_;
  std::array<obs::Counter*, 3> answered_;  // by status: 2xx, 4xx, 5xx
  WorkerPool tokenizer_;
};

}  // namespace hidane::serve
