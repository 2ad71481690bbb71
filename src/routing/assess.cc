#include <algorithm>
#include <cmath>

#include "routing/policy.h"

namespace hidane::routing {
namespace {

// Residents' decode steps run between the chunks of a prefill.
double Interference(uint32_t uncached, const WorkerState& worker, const Params& params) {
  if (worker.ledger.in_flight() == worker.ledger.unanswered()) return 0;
  const double chunks = std::ceil(uncached / params.prefill_chunk_tokens);
  return chunks * worker.speed.StepSeconds(worker.ledger.context_tokens());
}

// Memory comes free as requests end: running tokens over their mean life.
double KvWait(const Query& query, const WorkerState& worker) {
  const Ledger& ledger = worker.ledger;
  uint64_t wanted = ledger.running_tokens() + query.k1_tokens + query.own_tokens();
  if (wanted <= worker.capacity_tokens || ledger.running_tokens() == 0) return 0;
  if (ledger.Runs(query.prompt.k1())) wanted -= query.k1_tokens;
  if (wanted <= worker.capacity_tokens) return 0;
  const auto missing = static_cast<double>(wanted - worker.capacity_tokens);
  return missing / static_cast<double>(ledger.running_tokens()) * ledger.mean_life_s();
}

}  // namespace

Candidate Assess(const Query& query, const WorkerState& worker, const Params& params,
                 const CachedBounds& known) {
  const CacheIndex::Match match = worker.index.Find(query.prompt);
  const double cached = query.prompt.BytesAt(match.blocks) * query.tokens_per_byte;
  Candidate c;
  c.worker = worker.spec.id;
  c.cached_tokens = std::min(
      {std::max(static_cast<uint32_t>(cached), known.min), known.max, query.prompt_tokens});
  const uint32_t uncached = std::max(query.prompt_tokens - c.cached_tokens, 1u);
  c.ttft = {.wait = worker.ledger.wait_s(query.now),
            .prefill = worker.speed.PrefillSeconds(uncached, c.cached_tokens),
            .interference = Interference(uncached, worker, params),
            .kv_wait = KvWait(query, worker)};
  const uint64_t context = worker.ledger.context_tokens() + query.prompt_tokens;
  c.decode_s = query.output_tokens * worker.speed.StepSeconds(context);
  c.recent_prefill_s = worker.ledger.recent_prefill_s(query.age);
  return c;
}

}  // namespace hidane::routing
