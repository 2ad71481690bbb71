#include "sim/gateway.h"

#include <utility>

#include "base/rng.h"

namespace hidane::sim {

Gateway::Gateway(const Options& options, World& world)
    : options_(options),
      world_(&world),
      router_(std::make_unique<routing::Router>(options.params, options.health)),
      orphans_({.most = options.orphans_max}),
      statics_(options.params.prefixes_max) {}

Result<Gateway> Gateway::Make(const Options& options, World& world) {
  Gateway gateway(options, world);
  HIDANE_CHECK_OK(gateway.router_->SetPolicy(options.policy));
  return gateway;
}

Gateway::Call* Gateway::Find(uint64_t run) {
  const auto at = calls_.find(run);
  return at == calls_.end() ? nullptr : &at->second;
}

Gateway::Call* Gateway::FindOf(uint64_t client) {
  const auto at = attached_.find(client);
  Call* const call = Find(at == attached_.end() ? client : at->second);
  return call != nullptr && call->client == client ? call : nullptr;
}

Result<routing::Decision> Gateway::Route(const Call& call, std::optional<WorkerId> not_worker,
                                         TimePoint now) {
  const routing::RouteRequest request{
      .identity = call.request->prompt, .fingerprint = call.fingerprint, .not_worker = not_worker};
  ++decisions_;
  if (options_.wall == nullptr) return router_->Route(request, now);
  const TimePoint begun = options_.wall->Now();
  auto decision = router_->Route(request, now);
  decision_time_ += options_.wall->Now() - begun;
  return decision;
}

void Gateway::Arrive(const Request& request, TimePoint now) {
  const prompt::Identity& prompt = request.prompt;
  const uint64_t fingerprint = Mix64(prompt.HashAt(prompt.size()) ^ prompt.tokens);
  if (Attach(request, fingerprint, now)) return;
  if (options_.params.keep_warm && statics_.Find(prompt.k1()) == nullptr) {
    statics_.Touch(prompt.k1()) = prompt.StaticPart();
  }
  Call& call = calls_[request.id];
  call.request = &request;
  call.client = request.id;
  call.fingerprint = fingerprint;
  auto decision = Route(call, std::nullopt, now);
  if (!decision) return End(call, {}, now);
  Take(call, *std::move(decision), now);
  SendReady(now);
}

void Gateway::Take(Call& call, routing::Decision decision, TimePoint now) {
  call.decision = std::move(decision);
  call.sent = false;
  const uint64_t id = call.request->id;
  if (call.decision.flight != routing::Flight::kFollow) {
    ready_.push_back(id);
    return;
  }
  followers_.emplace(call.decision.ticket.value(), id);
  call.waits_until = now + FromSeconds(call.decision.wait_s);
  world_->WakeAt(call.waits_until, id);
}

void Gateway::Wake(uint64_t id, TimePoint now) {
  Call* const call = Find(id);
  if (call == nullptr || now < call->waits_until) return;
  if (followers_.erase(call->decision.ticket.value()) == 0) return;  // released before
  ready_.push_back(id);
  SendReady(now);
}

void Gateway::Release(const std::vector<routing::Ticket>& followers) {
  for (const routing::Ticket ticket : followers) {
    const auto at = followers_.find(ticket.value());
    if (at == followers_.end()) continue;
    ready_.push_back(at->second);
    followers_.erase(at);
  }
}

// A queue and not a recursion: each worker found dead may release the next follower.
void Gateway::SendReady(TimePoint now) {
  for (size_t i = 0; i < ready_.size(); ++i) {
    if (Call* const call = Find(ready_[i])) Send(*call, now);
  }
  ready_.clear();
}

void Gateway::Send(Call& call, TimePoint now) {
  ++call.attempts;
  ++sent_;
  call.sent = true;
  call.sent_at = now;
  router_->OnDispatch(call.decision.ticket, now);
  switch (world_->Send(*call.request, call.decision.worker, now)) {
    case Sent::kTaken:
      return;
    case Sent::kUnreachable:
      return Break(call, routing::Fault::kConnect, routing::Outcome::kConnectError, now);
    case Sent::kRejected:
      Close(call, routing::End::kComplete, now);
      return End(call, {.worker = call.decision.worker}, now);
  }
}

void Gateway::Break(Call& call, routing::Fault fault, routing::Outcome outcome, TimePoint now) {
  router_->OnFault(call.decision.ticket, fault, now);
  const routing::Attempt attempt{.outcome = outcome,
                                 .number = call.attempts,
                                 .byte_sent = call.answered,
                                 .byte_received = call.answered,
                                 .elapsed_s = Seconds(now - call.sent_at)};
  if (call.client != 0 && router_->AllowFailover(attempt, call.fingerprint, now)) {
    if (auto elsewhere = Route(call, call.decision.worker, now)) {
      ++failovers_;
      Close(call, routing::End::kFault, now);
      return Take(call, *std::move(elsewhere), now);
    }
  }
  Close(call, routing::End::kFault, now);
  End(call, {.worker = call.decision.worker}, now);
}

void Gateway::FirstToken(uint64_t run, TimePoint now) {
  Call* const call = Find(run);
  if (call == nullptr) return;
  call->answered = true;
  Release(router_->OnFirstByte(call->decision.ticket, now));
  if (call->client != 0) world_->OnFirstByte(call->client, now);
  SendReady(now);
}

void Gateway::Finish(uint64_t run, uint32_t cached_tokens, TimePoint now) {
  Call* const call = Find(run);
  if (call == nullptr) return;
  router_->OnUsage(call->decision.ticket,
                   {.prompt_tokens = call->request->prompt.tokens,
                    .output_tokens = call->request->output_tokens,
                    .cached_tokens = cached_tokens},
                   now);
  Close(*call, routing::End::kComplete, now);
  const Ending ending{.ok = true,
                      .worker = call->decision.worker,
                      .cached_tokens = cached_tokens,
                      .expected_cached = call->decision.expected_cached};
  if (call->client != 0 || call->refresh) {
    End(*call, ending, now);
  } else {
    call->answer = ending;
    orphans_.Answered(run, now);
  }
  SendReady(now);
}

void Gateway::Reset(uint64_t run, TimePoint now) {
  Call* const call = Find(run);
  if (call == nullptr) return;
  Break(*call, routing::Fault::kReset, routing::Outcome::kClosedEarly, now);
  SendReady(now);
}

void Gateway::Close(Call& call, routing::End end, TimePoint now) {
  followers_.erase(call.decision.ticket.value());
  Release(router_->OnDone(call.decision.ticket, end, now));
}

void Gateway::End(Call& call, Ending ending, TimePoint now) {
  const uint64_t run = call.request->id;
  ending.id = call.client;
  attached_.erase(ending.id);
  if (ending.id == 0) orphans_.Forget(run);
  calls_.erase(run);
  if (ending.id != 0) world_->OnEnd(ending, now);
}

void Gateway::Tick(TimePoint now) {
  for (const auto& [run, call] : calls_) {
    if (call.answered && !call.answer) router_->OnProgress(call.decision.ticket, now);
  }
  for (const uint64_t run : orphans_.TakeOverdue(now)) Kill(run, now);
  SendReady(now);
  router_->OnTick(now);
  if (options_.params.keep_warm) RefreshDue(now);
}

void Gateway::RefreshDue(TimePoint now) {
  for (const routing::Refresh& due : router_->TakeRefreshes(now)) {
    const prompt::Identity* const prefix = statics_.Find(due.k1);
    if (prefix == nullptr) continue;  // no request of it came here
    auto decision = router_->RouteRefresh(*prefix, due.worker, now);
    if (!decision) continue;
    const uint64_t id = world_->NewRefreshId(options_.params.replica);
    Call& call = calls_[id];
    call.own = std::make_unique<Request>();
    call.own->id = id;
    call.own->prompt = *prefix;
    call.request = call.own.get();
    call.refresh = true;
    ++refreshes_;
    Take(call, *std::move(decision), now);
  }
  SendReady(now);
}

// Clients that leave.

bool Gateway::GiveUp(uint64_t id, TimePoint now) {
  Call* const call = FindOf(id);
  if (call == nullptr || call->answered) return false;
  if (options_.on_leave == OnLeave::kAttach && call->sent) {
    Orphan(*call, now);
  } else {
    if (options_.on_leave != OnLeave::kRunOn && call->sent) {
      world_->Cancel(call->request->id, call->decision.worker);
    }
    Close(*call, routing::End::kAbandoned, now);
    End(*call, {.worker = call->decision.worker}, now);
  }
  SendReady(now);
  return true;
}

void Gateway::Orphan(Call& call, TimePoint now) {
  if (call.own == nullptr) {
    call.own = std::make_unique<Request>(*call.request);
    call.request = call.own.get();
  }
  const Ending ending{.id = std::exchange(call.client, 0), .worker = call.decision.worker};
  attached_.erase(ending.id);
  const auto oldest = orphans_.Add(call.fingerprint, call.request->id, now);
  world_->OnEnd(ending, now);
  if (oldest) Kill(*oldest, now);
}

void Gateway::Kill(uint64_t run, TimePoint now) {
  Call* const call = Find(run);
  if (call == nullptr) return;
  if (!call->answer) {
    world_->Cancel(run, call->decision.worker);
    Close(*call, routing::End::kAbandoned, now);
  }
  calls_.erase(run);
}

bool Gateway::Attach(const Request& retry, uint64_t fingerprint, TimePoint now) {
  if (options_.on_leave != OnLeave::kAttach || retry.attempt == 0) return false;
  const auto run = orphans_.Adopt(fingerprint);
  if (!run) return false;
  Call& call = calls_.at(*run);
  call.client = retry.id;
  attached_.emplace(retry.id, *run);
  ++adopted_;
  if (call.answered) world_->OnFirstByte(retry.id, now);
  if (call.answer) End(call, *call.answer, now);
  return true;
}

}  // namespace hidane::sim
