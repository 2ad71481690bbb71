// The part of a call's life that has an engine: send, fail over, relay, settle.
#include <utility>

#include "base/error_map.h"
#include "gateway/call.h"
#include "gateway/headers.h"

namespace hidane::gateway {
namespace {

/// Whether a connection that broke with `failure` says something bad about the worker.
routing::Fault FaultOf(net::Failure failure, bool timed_out) {
  if (timed_out || failure == net::Failure::kTimeout) return routing::Fault::kSilence;
  return failure == net::Failure::kConnect ? routing::Fault::kConnect : routing::Fault::kReset;
}

routing::Outcome OutcomeOf(net::Failure failure, bool timed_out) {
  if (timed_out || failure == net::Failure::kTimeout) return routing::Outcome::kOther;
  switch (failure) {
    case net::Failure::kConnect:
      return routing::Outcome::kConnectError;
    case net::Failure::kStale:
    case net::Failure::kNoAnswer:
    case net::Failure::kCut:
      return routing::Outcome::kClosedEarly;
    default:
      return routing::Outcome::kOther;
  }
}

}  // namespace

net::Task<Status> Call::Attempt() {
  ++attempts_;
  answered_ = false;
  dispatched_ = context().clock.Now();
  const routing::Ticket ticket = decision_->ticket;
  context().fleet.WithRouter(
      [&](routing::Router& router, TimePoint now) { router.OnDispatch(ticket, now); });
  for (int fresh = 0;; ++fresh) {
    net::ClientStream engine(proxy_.pool());
    engine_ = &engine;
    Status status = co_await Converse(engine, fresh == 0);
    engine_ = nullptr;
    silence_.Disarm();
    // An idle connection that the engine had just given up: it never saw this request.
    if (fresh == 0 && !status && !gone_ && engine.failure() == net::Failure::kStale) continue;
    co_return status;
  }
}

net::RequestHead Call::HeadForEngine() {
  const net::RequestHead& from = exchange_.head();
  const UpstreamConfig& upstream = context().fleet.upstream(decision_->worker);
  net::RequestHead head;
  head.method = from.method;
  head.target = from.target;
  head.authority = upstream.authority;
  head.headers =
      HeadersForEngine(from.headers, upstream.api_key, request_id_, prompt_.ask_usage.has_value());
  return head;
}

net::Task<Status> Call::Converse(net::ClientStream& engine, bool reuse) {
  const Config& config = *context().config;
  net::CallTimeouts timeouts;
  timeouts.connect = std::chrono::milliseconds(config.timeouts_connect_ms());
  timed_out_ = false;
  silence_.Arm(std::chrono::milliseconds(config.timeouts_first_byte_ms()));
  net::RequestHead head = HeadForEngine();
  Status sent = co_await engine.Send(context().addresses[decision_->worker.value()],
                                     std::move(head), pieces_, timeouts, reuse);
  if (!sent) co_return Broken(engine, std::move(sent).error());
  auto answer = co_await engine.ReadHead();
  if (!answer) co_return Broken(engine, std::move(answer).error());
  if (answer->status >= 500) {
    Fault(routing::Fault::k5xx);
    const bool refused = answer->status == 502 || answer->status == 503;
    if (refused && FailOver(routing::Outcome::kBadGateway))
      co_return Fail(Code::kUnavailable, "the engine refused");
  }
  net::ResponseHead taken = std::move(*answer);
  co_return co_await Relay(engine, std::move(taken));
}

net::ResponseHead Call::HeadForClient(const net::ResponseHead& answer) {
  net::ResponseHead head;
  head.status = answer.status;
  head.headers = HeadersForClient(answer.headers);
  head.headers.Add("x-request-id", request_id_);
  head.headers.Add("x-hidane-worker", context().fleet.name(decision_->worker));
  head.headers.Add("x-hidane-decision", routing::Name(decision_->rule));
  head.headers.Add("x-hidane-cached-expected", std::to_string(decision_->expected_cached));
  if (IsEventStream(answer.headers)) {
    head.headers.Set("x-accel-buffering", "no");  // a proxy in front must not hold events back
    const bool edited = prompt_.ask_usage.has_value();
    events_.emplace(edited, static_cast<size_t>(context().config->limits_held_bytes_max()));
    if (!edited) head.body_size = answer.body_size;
  } else {
    head.body_size = answer.body_size;
  }
  return head;
}

net::Task<Status> Call::Relay(net::ClientStream& engine, net::ResponseHead answer) {
  const Duration idle = std::chrono::milliseconds(context().config->timeouts_stream_idle_ms());
  // The client's head waits for the first byte of the body: until then an error is still a status.
  auto some = co_await engine.ReadSome();
  if (!some) co_return Broken(engine, std::move(some).error());
  http_status_ = answer.status;
  OnFirstByte();
  net::ResponseHead head = HeadForClient(answer);
  exchange_.WriteHead(std::move(head));
  std::string_view last;
  while (some && !some->empty()) {
    silence_.Disarm();  // while the client is the slow one
    const std::string_view bytes = Watched(*some);
    if (engine.ended() && !(events_ && events_->holds())) {
      last = bytes;  // goes out with the end in one write
      break;
    }
    Status written = co_await exchange_.Write(bytes);
    gone_ |= !written;
    if (!written) co_return written;
    silence_.Arm(idle);
    some = co_await engine.ReadSome();
  }
  silence_.Disarm();
  if (!some) {
    if (gone_) co_return Fail(Code::kCancelled, "the client left");
    Fault(FaultOf(engine.failure(), timed_out_));
    End(routing::End::kFault);
    co_return co_await BreakOff(std::move(some).error());
  }
  if (events_ && events_->holds()) last = events_->Finish();
  const auto usage = events_ ? events_->usage() : tail_.Finish();
  if (usage) OnUsage(*usage);
  End(http_status_ >= 500 ? routing::End::kFault : routing::End::kComplete);
  context().metrics.answered.Add();
  Status sent = co_await exchange_.Finish(last);
  gone_ |= !sent;
  co_return sent;
}

/// What of an answer's bytes goes to the client.
std::string_view Call::Watched(std::string_view bytes) {
  if (events_) {
    bytes = events_->Feed(bytes);
    const TimePoint now = context().clock.Now();
    if (now - progress_ > std::chrono::seconds(1)) {
      progress_ = now;
      context().fleet.WithRouter(
          [&](routing::Router& router, TimePoint at) { router.OnProgress(decision_->ticket, at); });
    }
  } else {
    tail_.Feed(bytes);
  }
  return bytes;
}

net::Task<Status> Call::BreakOff(Error error) {
  context().metrics.cut_streams.Add();
  if (timed_out_) error = {Code::kDeadlineExceeded, "the engine fell silent", {}};
  if (events_) {
    std::string event = events_->mid_event() ? "\n\n" : "";
    event += "data: " + ErrorBody(error) + "\n\n";
    (void)co_await exchange_.Write(event);
  }
  exchange_.Abort();
  co_return Fail(std::move(error));
}

Status Call::Broken(const net::ClientStream& engine, Error error) {
  if (gone_) return Fail(Code::kCancelled, "the client left");
  const net::Failure failure = engine.failure();
  if (failure == net::Failure::kStale && engine.reused()) return Fail(std::move(error));
  Fault(FaultOf(failure, timed_out_));
  if (FailOver(OutcomeOf(failure, timed_out_))) return Fail(std::move(error));
  End(routing::End::kFault);
  if (timed_out_ || failure == net::Failure::kTimeout)
    return Fail(Code::kDeadlineExceeded, "the engine was silent past its limit");
  if (failure == net::Failure::kConnect)
    return Fail(Code::kUnavailable, "no engine could be reached");
  return Fail(Code::kDataLoss, "the engine broke off before its answer");
}

bool Call::FailOver(routing::Outcome outcome) {
  routing::Attempt attempt;
  attempt.outcome = outcome;
  attempt.number = attempts_;
  attempt.byte_sent = exchange_.head_sent();
  attempt.byte_received = answered_;
  attempt.elapsed_s = Seconds(context().clock.Now() - dispatched_);
  const bool allowed = context().fleet.WithRouter([&](routing::Router& router, TimePoint now) {
    return router.AllowFailover(attempt, fingerprint_, now);
  });
  if (!allowed) return false;
  auto elsewhere = Choose(decision_->worker);
  if (!elsewhere) return false;
  next_ = std::move(*elsewhere);
  return true;
}

void Call::Fault(routing::Fault fault) {
  context().fleet.WithRouter([&](routing::Router& router, TimePoint now) {
    router.OnFault(decision_->ticket, fault, now);
  });
}

void Call::OnFirstByte() {
  answered_ = true;
  if (context().config->routing_keep_warm() && http_status_ < 300) KeepStaticPart();
  exchange_.TakeBack(std::move(body_));
  ttft_s_ = Elapsed();
  progress_ = context().clock.Now();
  if (http_status_ >= 300) return;
  context().metrics.ttft.Observe(ttft_s_);
  context().fleet.FirstByte(decision_->ticket);
}

// For requests of the gateway's own: KeepWarm.
void Call::KeepStaticPart() {
  const prompt::Identity& identity = prompt_.identity;
  if (!api_ || identity.k1_end == 0 || context().statics.Knows(identity.k1())) return;
  if (auto body = RefreshBody(*api_, body_.view())) {
    context().statics.Put(identity.k1(),
                          {exchange_.head().target, *std::move(body), identity.StaticPart()});
  }
}

void Call::OnUsage(const Usage& usage) {
  usage_ = usage;
  Metrics& metrics = context().metrics;
  const auto count = [](int64_t n) { return n > 0 ? static_cast<uint32_t>(n) : 0u; };
  metrics.prompt_tokens.Add(count(usage.prompt_tokens));
  metrics.cached_tokens.Add(count(usage.cached_tokens));
  metrics.completion_tokens.Add(count(usage.completion_tokens));
  routing::Usage told{count(usage.prompt_tokens), count(usage.completion_tokens), std::nullopt};
  if (usage.cached_tokens >= 0) told.cached_tokens = count(usage.cached_tokens);
  regret_ = context().fleet.WithRouter([&](routing::Router& router, TimePoint now) {
    return router.OnUsage(decision_->ticket, told, now);
  });
  context().fleet.OnUsageSeen(decision_->worker, usage);
  if (regret_)
    metrics.regret.Observe(static_cast<double>(std::max<int64_t>(0, regret_->cached_tokens)));
}

}  // namespace hidane::gateway
