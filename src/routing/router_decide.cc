// The decision: what is asked, who is chosen, and what choosing changes.
#include <algorithm>
#include <string>

#include "base/hash.h"
#include "routing/router_impl.h"

namespace hidane::routing {

Result<Pool*> Router::Impl::PoolFor(const prompt::Identity& prompt) const {
  if (Pool* const pool = fleet.PoolOf(prompt.model)) return pool;
  return Fail(Code::kNotFound, "no worker serves model " + prompt.model, "model");
}

Query Router::Impl::MakeQuery(const RouteRequest& request, const Pool& pool, TimePoint now) const {
  const prompt::Identity& prompt = request.identity;
  Query q{.prompt = prompt, .not_worker = request.not_worker, .now = now, .age = pool.recent.age()};
  const prompt::TokenRatio* const known = ratios.Find(Xxh3(prompt.model));
  const prompt::TokenRatio ratio = known != nullptr ? *known : prompt::TokenRatio();
  q.tokens_per_byte = prompt.tokens > 0 && prompt.bytes() > 0
                          ? static_cast<double>(prompt.tokens) / prompt.bytes()
                          : ratio.tokens_per_byte();
  const auto tokens = [&](size_t blocks) {
    return static_cast<uint32_t>(prompt.BytesAt(blocks) * q.tokens_per_byte + 0.5);
  };
  q.prompt_tokens = std::max(tokens(prompt.size()), 1u);
  q.k1_tokens = std::min(tokens(prompt.k1_end), q.prompt_tokens);
  const auto usual = static_cast<uint32_t>(pool.output_tokens);
  q.output_tokens = std::min(request.max_tokens.value_or(usual), usual);
  return q;
}

Result<Choice> Router::Impl::Decide(const Query& query, const Pool& pool,
                                    Decision& decision) const {
  const Choice choice = pool.policy->Choose(query, pool.workers, decision.candidates);
  if (choice.worker == nullptr) {
    return Fail(Code::kUnavailable,
                "all " + std::to_string(pool.workers.size()) + " workers are out");
  }
  Fill(query, choice, decision);
  if (pool.workers.size() == 1) decision.rule = Rule::kOnly;
  return choice;
}

void Router::Impl::Fill(const Query& query, const Choice& choice, Decision& decision) const {
  const WorkerId worker = choice.worker->spec.id;
  const auto chosen = std::ranges::find(decision.candidates, worker, &Candidate::worker);
  decision.worker = worker;
  decision.rule = choice.rule;
  decision.prompt_tokens = query.prompt_tokens;
  decision.expected_cached = chosen->cached_tokens;
  decision.ttft = chosen->ttft;
  decision.k1 = query.prompt.k1();
  decision.k1_tokens = query.k1_tokens;
  const uint32_t cold = query.k1_tokens - std::min(query.k1_tokens, decision.expected_cached);
  decision.flight = flights.Peek(decision.k1, worker, cold);
  if (decision.flight == Flight::kFollow) {
    decision.wait_s = params.single_flight_slack * decision.ttft.total();
  }
}

Live& Router::Impl::Begin(const RouteRequest& request, const Query& query, Pool& pool,
                          WorkerState& worker, uint32_t lasting_tokens, Decision& decision) {
  const prompt::Identity& prompt = request.identity;
  const TimePoint now = query.now;
  decision.ticket = Ticket(next_ticket++);
  flights.Join(decision.ticket, decision.k1, worker.spec.id, decision.flight);
  const CacheIndex::Match match = worker.index.Insert(prompt, query.tokens_per_byte, now);
  Live request_live{.worker = worker.spec.id,
                    .pool = &pool,
                    .cost = {.prefill_s = decision.ttft.prefill,
                             .own_tokens = query.own_tokens(),
                             .lasting_tokens = lasting_tokens,
                             .k1 = decision.k1,
                             .k1_tokens = query.k1_tokens,
                             .context_tokens = query.prompt_tokens + query.output_tokens / 2},
                    .model = Xxh3(prompt.model),
                    .fingerprint = request.fingerprint,
                    .prompt_bytes = prompt.bytes(),
                    .tokens_known = prompt.tokens > 0,
                    .prompt_tokens = query.prompt_tokens,
                    .uncached = query.prompt_tokens - decision.expected_cached,
                    .expected_cached = decision.expected_cached,
                    .ttft_s = decision.ttft.total(),
                    .wait_s = decision.ttft.wait,
                    .new_block = match.blocks < prompt.size() ? prompt.chain[match.blocks] : 0,
                    .routed = now,
                    .dispatched = now,
                    .trial = worker.health.state(now) == HealthState::kHalfOpen};
  // What is being computed right now can't have been evicted: only older entries can teach.
  if (match.blocks > 0 && !worker.ledger.Runs(decision.k1)) {
    request_live.entry_used = match.last_used;
  }
  pool.OnRouted(now);
  worker.ledger.Add(request_live.cost, now, pool.recent.age());
  worker.reserve.Observe(worker.ledger.passing_tokens(), worker.capacity_tokens);
  worker.health.OnDispatch(now);
  MakeRoom(live);
  return live.emplace(decision.ticket.value(), std::move(request_live)).first->second;
}

Result<Decision> Router::Route(const RouteRequest& request, TimePoint now) {
  HIDANE_TRY(Pool* const pool, impl_->PoolFor(request.identity));
  const Query query = impl_->MakeQuery(request, *pool, now);
  Decision decision;
  HIDANE_TRY(const Choice choice, impl_->Decide(query, *pool, decision));
  choice.worker->index.PrefetchInsert();
  const uint32_t lasting_tokens = pool->policy->Commit(query, choice);
  impl_->Begin(request, query, *pool, *choice.worker, lasting_tokens, decision);
  return decision;
}

Result<Decision> Router::RouteRefresh(const prompt::Identity& prefix, WorkerId worker,
                                      TimePoint now) {
  HIDANE_TRY(Pool* const pool, impl_->PoolFor(prefix));
  const RouteRequest request{.identity = prefix, .max_tokens = 1};
  const Query query = impl_->MakeQuery(request, *pool, now);
  WorkerState* const home = FindWorker(pool->workers, worker);
  if (home == nullptr || !query.MayTake(*home)) {
    return Fail(Code::kUnavailable, "worker " + std::to_string(worker.value()) + " is out");
  }
  Decision decision;
  decision.candidates.push_back(Assess(query, *home, impl_->params));
  impl_->Fill(query, {home, Rule::kRefresh}, decision);
  decision.flight = Flight::kGo;  // what is cached needs no leader
  impl_->Begin(request, query, *pool, *home, 0, decision).refresh = true;
  return decision;
}

Result<Decision> Router::Explain(const RouteRequest& request, TimePoint now) const {
  HIDANE_TRY(const Pool* const pool, std::as_const(*impl_).PoolFor(request.identity));
  Decision decision;
  HIDANE_TRY(std::ignore, impl_->Decide(impl_->MakeQuery(request, *pool, now), *pool, decision));
  return decision;
}

}  // namespace hidane::routing
