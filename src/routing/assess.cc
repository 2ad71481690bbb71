#include <algorithm>
#include <cmath>

#include "routing/policy.h"

namespace hidane::routing {
namespace {

double PrefillSeconds(uint32_t tokens, const WorkerState& worker) {
  return tokens / worker.rate.tokens_per_s();
}

// Residents' decode steps run between the chunks of a prefill.
double Interference(uint32_t uncached, const WorkerState& worker, const Params& params) {
  const uint32_t residents = worker.ledger.in_flight() - worker.ledger.unanswered();
  const double chunks = std::ceil(uncached / params.prefill_chunk_tokens);
  return chunks * residents * params.resident_step_s;
}

// Memory comes free as requests end: running tokens over their mean life.
double KvWait(const Query& query, const WorkerState& worker) {
  const Ledger& ledger = worker.ledger;
  const uint64_t shared = ledger.Runs(query.prompt.k1()) ? 0 : query.k1_tokens;
  const uint64_t wanted = ledger.running_tokens() + shared + query.own_tokens();
  if (wanted <= worker.capacity_tokens || ledger.running_tokens() == 0) return 0;
  const auto missing = static_cast<double>(wanted - worker.capacity_tokens);
  return missing / static_cast<double>(ledger.running_tokens()) * ledger.mean_life_s();
}

}  // namespace

Candidate Assess(const Query& query, const WorkerState& worker, const Params& params) {
  const CacheIndex::Match match = worker.index.Find(query.prompt);
  const double cached = query.prompt.BytesAt(match.blocks) * query.tokens_per_byte;
  Candidate c;
  c.worker = worker.spec.id;
  c.cached_tokens = std::min(static_cast<uint32_t>(cached), query.prompt_tokens);
  const uint32_t uncached = std::max(query.prompt_tokens - c.cached_tokens, 1u);
  c.ttft = {.wait = worker.ledger.wait_s(query.now),
            .prefill = PrefillSeconds(uncached, worker),
            .interference = Interference(uncached, worker, params),
            .kv_wait = KvWait(query, worker)};
  return c;
}

}  // namespace hidane::routing
