#include "gateway/call.h"

#include <utility>

#include "base/error_map.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/rng.h"
#include "gateway/api.h"
#include "gateway/headers.h"
#include "gateway/opaque.h"
#include "gateway/respond.h"

namespace hidane::gateway {
Call::Call(Proxy& proxy, net::Exchange& exchange)
    : proxy_(proxy),
      exchange_(exchange),
      begun_(proxy.context().clock.Now()),
      released_(proxy.loop()),
      silence_(proxy.loop(), [this] {
        timed_out_ = true;
        if (engine_ != nullptr) engine_->Abort();
      }) {
  const auto id = exchange.head().headers.Get("x-request-id");
  request_id_ = id && IsRequestId(*id) ? std::string(*id) : proxy.NewRequestId();
}

Call::~Call() {
  exchange_.TakeBack(std::move(body_));
  exchange_.OnDisconnect(nullptr);
  End(routing::End::kAbandoned);
  if (next_) context().fleet.Done(next_->ticket, routing::End::kAbandoned);
}

net::Task<> Call::Run() {
  Status status = co_await ReadBody();
  if (status) status = Identify();
  if (status) status = Route();
  while (status) {
    status = co_await WaitForPrefix();
    if (status) status = co_await Attempt();
    if (status || !next_) break;
    End(routing::End::kFault);
    Take(std::move(*std::exchange(next_, std::nullopt)));
    context().metrics.failovers.Add();
    status = Status();
  }
  if (gone_) {
    context().metrics.client_gone.Add();
  } else if (!status && !exchange_.head_sent()) {
    if (http_status_ != 408) http_status_ = ToWire(status.error().code).http_status;
    context().metrics.Refused(status.error().code).Add();
    End(routing::End::kAbandoned);
    (void)co_await RespondError(exchange_, status.error(), request_id_, http_status_);
  }
  Log();
}

net::Task<Status> Call::ReadBody() {
  auto body =
      co_await exchange_.ReadBody(static_cast<size_t>(context().config->limits_body_bytes_max()));
  if (!body) {
    gone_ = body.error().code == Code::kCancelled;
    Error error = std::move(body).error();
    if (error.code == Code::kDeadlineExceeded) {  // the client's, not an engine's
      error.code = Code::kInvalidArgument;
      http_status_ = 408;
    }
    co_return Fail(std::move(error));
  }
  body_ = std::move(*body);
  body_bytes_ = body_.size();
  exchange_.OnDisconnect([this] { OnClientGone(); });
  co_return Status();
}

Status Call::Identify() {
  context().metrics.requests.Add();
  const net::RequestHead& head = exchange_.head();
  const auto api = api_ = head.method == "POST" ? ApiOf(head.path()) : std::nullopt;
  pieces_ = {body_.view(), {}, {}};
  if (api) {
    HIDANE_CHECK_OK(proxy_.reader().Read(*api, body_.view(), body_.size() + net::Buffer::kPadding,
                                         proxy_.read_options(), prompt_));
    streams_tokens_ =
        prompt_.stream && (*api == prompt::Api::kChat || *api == prompt::Api::kCompletions);
  } else {
    prompt_.identity.model = OpaqueModel(body_.view());
    if (prompt_.identity.model.empty()) prompt_.identity.model = context().fleet.AnyModel();
  }
  if (const auto& ask = prompt_.ask_usage) {
    const std::string_view body = body_.view();
    pieces_ = {body.substr(0, ask->offset), ask->text, body.substr(ask->offset + ask->length)};
  }
  // One poison prompt is one fingerprint, however it is sampled; the chain has its hash already.
  const prompt::Identity& identity = prompt_.identity;
  fingerprint_ = api ? Mix64(identity.HashAt(identity.size()) ^ body_.size())
                     : Xxh3(body_.view(), Xxh3(head.target));
  return context().fleet.CheckModel(prompt_.identity.model);
}

Status Call::Route() {
  HIDANE_TRY(routing::Decision decision, Choose(std::nullopt));
  Take(std::move(decision));
  return {};
}

Result<routing::Decision> Call::Choose(std::optional<WorkerId> not_worker) {
  const routing::RouteRequest request{prompt_.identity, prompt_.max_tokens, fingerprint_,
                                      not_worker};
  return context().fleet.Route(request, proxy_.releaser());
}

void Call::Take(routing::Decision decision) {
  decision_ = std::move(decision);
  open_ = true;
  context().metrics.Decisions(decision_->rule).Add();
}

net::Task<Status> Call::WaitForPrefix() {
  if (decision_->flight == routing::Flight::kFollow && !gone_) {
    const TimePoint start = context().clock.Now();
    const Proxy::Waiting waiting(proxy_, decision_->ticket, released_);
    (void)co_await released_.WaitFor(FromSeconds(decision_->wait_s));
    context().metrics.queue_wait.Observe(Seconds(context().clock.Now() - start));
  }
  if (gone_) co_return Fail(Code::kCancelled, "the client left");
  co_return Status();
}

void Call::OnClientGone() {
  gone_ = true;
  if (engine_ != nullptr) engine_->Abort();
  released_.Notify();
}

void Call::End(routing::End end) {
  if (!std::exchange(open_, false)) return;
  context().fleet.Done(decision_->ticket, end);
}

double Call::Elapsed() const {
  return Seconds(context().clock.Now() - begun_);
}

void Call::Log() const {
  const std::string_view worker = decision_ ? context().fleet.name(decision_->worker) : "";
  const int status = gone_ ? 499 : http_status_;
  if (decision_)  // before the line: who has read it finds the decision
    context().decisions.Add(
        {request_id_, *decision_, std::string(worker), status, ttft_s_, usage_, regret_});
  if (!context().config->log_requests()) return;
  log::Info("request.done", {{"request_id", request_id_},
                             {"path", exchange_.head().path()},
                             {"status", status},
                             {"worker", worker},
                             {"decision", decision_ ? routing::Name(decision_->rule) : ""},
                             {"attempts", attempts_},
                             {"body_bytes", body_bytes_},
                             {"prompt_tokens", usage_ ? usage_->prompt_tokens : -1},
                             {"cached_tokens", usage_ ? usage_->cached_tokens : -1},
                             {"cached_expected", decision_ ? decision_->expected_cached : 0},
                             {"completion_tokens", usage_ ? usage_->completion_tokens : -1},
                             {"ttft_ms", ttft_s_ * 1e3},
                             {"total_ms", Elapsed() * 1e3}});
}

}  // namespace hidane::gateway
