#pragma once
#include <boost/unordered/unordered_flat_map.hpp>

#include "prompt/token_ratio.h"
#include "routing/flat_map.h"
#include "routing/fleet.h"
#include "routing/lru_map.h"
#include "routing/router.h"
#include "routing/single_flight.h"

namespace hidane::routing {
inline constexpr size_t kModelsMax = 256;  // names come from clients where a pool serves any model

/// A routed request until OnDone.
struct Live {
  WorkerId worker;
  Pool* pool = nullptr;
  Cost cost;
  uint64_t model = 0;  // hash of its name
  uint64_t fingerprint = 0;
  uint32_t prompt_bytes = 0;
  bool tokens_known = false;
  uint32_t prompt_tokens = 1;  // estimated
  uint32_t uncached = 0;
  uint32_t expected_cached = 0;
  uint32_t output_tokens = 0;  // as usage said
  uint64_t context_then = 0;   // of its worker, when the answer began
  double ttft_s = 0;
  double wait_s = 0;                      // predicted when it was dispatched
  uint64_t new_block = 0;                 // first block that the worker does not hold yet; 0: none
  std::optional<TimePoint> entry_used{};  // expectation rests on an entry last used then
  TimePoint routed{};
  TimePoint dispatched{};
  TimePoint answered_at{};
  bool answered = false;
  bool faulted = false;
  bool refresh = false;
  bool trial = false;  // it is the one request of a half-open worker
};

/// What a Router keeps. router.cc: a request's life; router_decide.cc: the decision.
struct Router::Impl {
  Params params;
  HealthParams health;
  Fleet fleet;
  boost::unordered_flat_map<uint64_t, Live> live;  // by ticket
  LruMap<prompt::TokenRatio> ratios{kModelsMax};
  SingleFlight flights;
  Failover failover;
  uint64_t next_ticket = 1;

  Impl(const Params& p, const HealthParams& h)
      : params(p), health(h), fleet(p, h), flights(p.single_flight_tokens) {}

  Live* FindLive(Ticket ticket);
  Result<Pool*> PoolFor(const prompt::Identity& prompt) const;
  Query MakeQuery(const RouteRequest& request, const Pool& pool, TimePoint now) const;
  /// Fills all of `decision` but its ticket; changes nothing.
  Result<Choice> Decide(const Query& query, const Pool& pool, Decision& decision) const;
  void Fill(const Query& query, const Choice& choice, Decision& decision) const;
  /// The request goes to `worker`: gives it a ticket, counts it, and believes in what it computes.
  /// `lasting_tokens`: of Policy::Commit. Valid until the next one.
  Live& Begin(const RouteRequest& request, const Query& query, Pool& pool, WorkerState& worker,
              uint32_t lasting_tokens, Decision& decision);
  void LearnStep(const Live& request, TimePoint now);
  void LearnCached(const Live& request, const Usage& usage, TimePoint now);
};

}  // namespace hidane::routing
