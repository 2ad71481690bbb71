#include <algorithm>
#include <string>

#include "base/hash.h"
#include "routing/router_impl.h"

namespace hidane::routing {

Live* Router::Impl::FindLive(Ticket ticket) {
  const auto at = live.find(ticket.value());
  return at == live.end() ? nullptr : &at->second;
}

// Fewer cached tokens than expected: the engine evicted this entry, so it did all that is older,
// and it holds less than the index thought. Shares of the prompt are compared, since tokens were
// estimated.
void Router::Impl::LearnCached(const Live& request, const Usage& usage, TimePoint now) {
  constexpr double kTolerance = 0.1;
  constexpr double kSlackTokens = 64;  // engines cache whole blocks, and never the last token
  WorkerState& worker = *fleet.Find(request.worker);
  worker.feedback = true;
  if (!request.entry_used || request.expected_cached == 0) return;
  const double expected =
      static_cast<double>(request.expected_cached) / request.prompt_tokens * usage.prompt_tokens;
  const bool held = *usage.cached_tokens + kSlackTokens >= (1 - kTolerance) * expected;
  worker.Trust(held);
  CacheLifetime& lifetime = request.pool->lifetime;
  if (held) {
    if (request.refresh) lifetime.Held();
    return;
  }
  worker.index.ForgetUnusedSince(*request.entry_used);
  lifetime.Gone(Seconds(request.dispatched - *request.entry_used));
  if (request.refresh) worker.refreshes_from = now + kRefreshPause;
}

// What was there when the answer began and what is there at its end stand for what was between.
void Router::Impl::LearnStep(const Live& request, TimePoint now) {
  constexpr uint32_t kStepsMin = 8;
  if (request.output_tokens <= kStepsMin) return;
  WorkerState& worker = *fleet.Find(request.worker);
  const uint64_t context = (request.context_then + worker.ledger.context_tokens()) / 2;
  const double step_s = Seconds(now - request.answered_at) / (request.output_tokens - 1);
  worker.speed.ObserveStep(context, step_s);
  request.pool->speed.ObserveStep(context, step_s);
}

Router::Router(const Params& params, const HealthParams& health)
    : impl_(std::make_unique<Impl>(params, health)) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;

void Router::PutWorker(const WorkerSpec& spec, TimePoint now) {
  const WorkerState* const known = impl_->fleet.Find(spec.id);
  if (known != nullptr && (known->spec.name != spec.name || known->spec.model != spec.model)) {
    RemoveWorker(spec.id, now);
  }
  impl_->fleet.Put(spec, now);
}

void Router::RemoveWorker(WorkerId id, TimePoint now) {
  erase_if(impl_->live, [&](const auto& entry) { return entry.second.worker == id; });
  impl_->fleet.Remove(id, now);
}

void Router::DrainWorker(WorkerId id, bool draining, TimePoint now) {
  WorkerState* const w = impl_->fleet.Find(id);
  if (w == nullptr || w->draining == draining) return;
  w->draining = draining;
  impl_->fleet.Changed(*w, now);
}

void Router::UpdateWorker(WorkerId id, const Telemetry& telemetry, TimePoint now) {
  WorkerState* const w = impl_->fleet.Find(id);
  if (w == nullptr) return;
  if (telemetry.start_time_s) {
    const bool restarted = w->start_time_s && *w->start_time_s != *telemetry.start_time_s;
    if (restarted) impl_->fleet.Emptied(*w);
    w->start_time_s = telemetry.start_time_s;
  }
  w->running = telemetry.running.value_or(w->running);
  w->waiting = telemetry.waiting.value_or(w->waiting);
  const uint64_t capacity = telemetry.kv_capacity_tokens.value_or(0);
  const bool configured = w->spec.kv_capacity_tokens != 0;
  if (configured || capacity == 0 || capacity == w->capacity_tokens) return;
  w->SetCapacity(capacity);
  impl_->fleet.Changed(*w, now);
}

void Router::ClearCache(WorkerId id) {
  if (WorkerState* const w = impl_->fleet.Find(id)) impl_->fleet.Emptied(*w);
}

void Router::OnKvEvents(WorkerId id, std::span<const KvEvent> events) {
  WorkerState* const w = impl_->fleet.Find(id);
  if (w != nullptr && Apply(events, w->index)) impl_->fleet.Emptied(*w);
}

void Router::OnDispatch(Ticket ticket, TimePoint now) {
  Live* const live = impl_->FindLive(ticket);
  if (live == nullptr) return;
  impl_->flights.Leave(ticket);
  if (now == live->routed) return;
  live->dispatched = now;
  const WorkerState* const w = impl_->fleet.Find(live->worker);
  live->wait_s = std::max(0.0, w->ledger.wait_s(now) - live->cost.prefill_s);
}

std::vector<Ticket> Router::OnFirstByte(Ticket ticket, TimePoint now) {
  Live* const live = impl_->FindLive(ticket);
  if (live == nullptr || live->answered) return {};
  WorkerState& w = *impl_->fleet.Find(live->worker);
  live->answered = true;
  live->answered_at = now;
  live->context_then = w.ledger.context_tokens();
  w.ledger.Answered(live->cost, now);
  const double prefill_s = Seconds(now - live->dispatched) - live->wait_s;
  for (EngineSpeed* const speed : {&w.speed, &live->pool->speed}) {
    speed->ObservePrefill(live->uncached, live->expected_cached, prefill_s);
  }
  w.health.OnSuccess(now);
  if (live->trial) impl_->fleet.Changed(w, now);
  return impl_->flights.Landed(ticket);
}

void Router::OnProgress(Ticket ticket, TimePoint now) {
  if (const Live* const live = impl_->FindLive(ticket)) {
    impl_->fleet.Find(live->worker)->ledger.Progress(now);
  }
}

std::optional<Regret> Router::OnUsage(Ticket ticket, const Usage& usage, TimePoint now) {
  Live* const live = impl_->FindLive(ticket);
  if (live == nullptr) return std::nullopt;
  if (!live->tokens_known && !live->refresh) {
    impl_->ratios.Touch(live->model).Observe(live->prompt_bytes, usage.prompt_tokens);
  }
  live->output_tokens = usage.output_tokens;
  if (!live->refresh)
    live->pool->output_tokens += 0.05 * (usage.output_tokens - live->pool->output_tokens);
  if (!usage.cached_tokens) return std::nullopt;
  impl_->LearnCached(*live, usage, now);
  const TimePoint answered_at = live->answered ? live->answered_at : now;
  return Regret{.cached_tokens = int64_t{live->expected_cached} - *usage.cached_tokens,
                .ttft_s = live->ttft_s - Seconds(answered_at - live->routed)};
}

void Router::OnFault(Ticket ticket, Fault fault, TimePoint now) {
  Live* const live = impl_->FindLive(ticket);
  if (live == nullptr) return;
  live->faulted = true;
  impl_->fleet.OnFault(*impl_->fleet.Find(live->worker), fault, live->fingerprint, now);
}

std::vector<Ticket> Router::OnDone(Ticket ticket, End end, TimePoint now) {
  Live* const live = impl_->FindLive(ticket);
  impl_->flights.Leave(ticket);
  if (live == nullptr) return impl_->flights.Failed(ticket);  // its worker was removed
  WorkerState& w = *impl_->fleet.Find(live->worker);
  if (end == End::kComplete && live->answered) impl_->LearnStep(*live, now);
  w.ledger.Done(live->cost, live->answered, Seconds(now - live->dispatched), now);
  if (end == End::kComplete && !live->faulted) w.health.OnSuccess(now);
  if (end == End::kAbandoned && live->trial && !live->answered) w.health.OnAbandoned();
  const bool computed = live->answered || (end == End::kComplete && !live->faulted);
  if (!computed && live->new_block != 0) w.index.ForgetRun(live->new_block);
  if (live->trial) impl_->fleet.Changed(w, now);
  impl_->live.erase(ticket.value());
  return computed ? impl_->flights.Landed(ticket) : impl_->flights.Failed(ticket);
}

void Router::OnProbe(WorkerId id, bool ok, TimePoint now) {
  WorkerState* const w = impl_->fleet.Find(id);
  if (w == nullptr) return;
  const HealthState before = w->health.state(now);
  w->health.OnProbe(ok, now);
  const HealthState after = w->health.state(now);
  if (after == before) return;
  if (after == HealthState::kDown) impl_->fleet.Emptied(*w);
  impl_->fleet.Changed(*w, now);
}

void Router::OnTick(TimePoint now) {
  for (const auto& pool : impl_->fleet.pools()) {
    for (WorkerState* const w : pool->workers) {
      const Ledger& ledger = w->ledger;
      const double silent_s = Seconds(now - ledger.last_progress());
      const double predicted_s = ledger.wait_s(ledger.last_progress());
      if (ledger.unanswered() > 0 &&
          silent_s > std::max(impl_->health.silence_s, 3 * predicted_s)) {
        impl_->fleet.OnFault(*w, Fault::kSilence, 0, now);
      }
    }
    pool->policy->OnMembers(pool->workers, now);
  }
}

bool Router::AllowFailover(const Attempt& attempt, uint64_t fingerprint, TimePoint now) {
  return impl_->failover.Allow(attempt, fingerprint, now);
}

Status Router::SetPolicy(std::string_view name) {
  if (std::ranges::find(PolicyNames(), name) == PolicyNames().end()) {
    return Fail(Code::kInvalidArgument, "no policy " + std::string(name), "policy");
  }
  const std::string kept(name);
  impl_->fleet.SetPolicy(name, [kept](const Params& params) { return MakePolicy(kept, params); });
  return {};
}

std::vector<Refresh> Router::TakeRefreshes(TimePoint now) {
  std::vector<Refresh> all;
  for (const auto& pool : impl_->fleet.pools()) {
    const double lifetime_s = pool->lifetime.seconds();
    for (const Refresh& due : pool->policy->TakeRefreshes(pool->workers, lifetime_s, now)) {
      all.push_back(due);
    }
  }
  return all;
}

std::vector<Delta> Router::TakeDeltas() {
  std::vector<Delta> all;
  for (const auto& pool : impl_->fleet.pools()) {
    for (Delta& delta : pool->policy->TakeDeltas()) {
      delta.pool = Xxh3(pool->model);
      all.push_back(delta);
    }
  }
  return all;
}

std::vector<Delta> Router::Snapshot() const {
  std::vector<Delta> all;
  for (const auto& pool : impl_->fleet.pools()) {
    for (Delta& delta : pool->policy->Snapshot()) {
      delta.pool = Xxh3(pool->model);
      all.push_back(delta);
    }
  }
  return all;
}

void Router::Merge(const Delta& delta, TimePoint now) {
  for (const auto& pool : impl_->fleet.pools()) {
    if (Xxh3(pool->model) == delta.pool) pool->policy->Merge(delta, now);
  }
}

void Router::LeaveConversation(std::string_view model, uint64_t k2) {
  if (Pool* const pool = impl_->fleet.PoolOf(model)) pool->policy->LeaveConversation(k2);
}

void Router::SetPolicy(std::string_view name, PolicyMaker make) {
  impl_->fleet.SetPolicy(name, std::move(make));
}

std::string_view Router::policy() const {
  return impl_->fleet.policy();
}
std::span<const std::string_view> Router::Policies() {
  return PolicyNames();
}

std::vector<WorkerView> Router::Workers(TimePoint now) const {
  std::vector<WorkerView> views;
  views.reserve(impl_->fleet.workers().size());
  for (const auto& w : impl_->fleet.workers()) {
    const Policy::Placed placed = impl_->fleet.PoolOf(w->spec.model)->policy->placed_at(w->spec.id);
    views.push_back({.id = w->spec.id,
                     .name = w->spec.name,
                     .model = w->spec.model,
                     .health = w->health.state(now),
                     .draining = w->draining,
                     .kv_capacity_tokens = w->capacity_tokens,
                     .assigned_tokens = placed.tokens,
                     .indexed_tokens = w->index.tokens(),
                     .indexed_blocks = w->index.blocks(),
                     .index_bytes = w->index.bytes(),
                     .prefixes = placed.prefixes,
                     .in_flight = w->ledger.in_flight(),
                     .running = w->running,
                     .waiting = w->waiting,
                     .wait_s = w->ledger.wait_s(now),
                     .prefill_tokens_per_s = w->speed.tokens_per_s(),
                     .feedback = w->feedback});
  }
  return views;
}

double Router::tokens_per_byte(std::string_view model) const {
  const prompt::TokenRatio* const ratio = impl_->ratios.Find(Xxh3(model));
  return ratio == nullptr ? prompt::TokenRatio().tokens_per_byte() : ratio->tokens_per_byte();
}

}  // namespace hidane::routing
