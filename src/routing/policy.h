#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "prompt/identity.h"
#include "routing/decision.h"
#include "routing/delta.h"
#include "routing/keep_warm.h"
#include "routing/params.h"
#include "routing/policy_maker.h"
#include "routing/worker_state.h"

namespace hidane::routing {

/// One request as policies see it.
struct Query {
  const prompt::Identity& prompt;
  double tokens_per_byte = 0.25;
  uint32_t prompt_tokens = 0;
  uint32_t k1_tokens = 0;      ///< of them, the static prefix
  uint32_t output_tokens = 0;  ///< expected
  std::optional<WorkerId> not_worker{};
  TimePoint now{};
  double age = 0;  ///< now, in half-lives of the pool's recent work

  /// The conversation has gone on: the prompt does not end with its first user message.
  bool has_history() const { return prompt.size() > prompt.k2_end; }
  uint32_t own_tokens() const { return prompt_tokens - k1_tokens + output_tokens; }
  bool MayTake(const WorkerState& worker) const {
    return worker.spec.id != not_worker && worker.MayTake(now);
  }
};

struct Choice {
  WorkerState* worker = nullptr;  ///< nullptr: none may take it
  Rule rule = Rule::kPolicy;
  bool moves = false;  ///< the prefix leaves its home for this worker
};

/// Which worker of a pool serves a request. Owns only what it must remember itself; load, cache
/// index and health are the router's and the same for all policies. Not thread-safe.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string_view name() const = 0;

  /// Chooses among `workers` (by id, not empty) those that query.MayTake, and changes nothing.
  /// Appends what it compared, the chosen one included, to `considered`.
  virtual Choice Choose(const Query& query, WorkerSpan workers,
                        std::vector<Candidate>& considered) const = 0;
  /// The request goes where Choose said. Returns the tokens of its prompt that the policy counts
  /// against the worker's memory for longer than the request runs.
  virtual uint32_t Commit(const Query& /*query*/, const Choice& /*choice*/) { return 0; }

  /// No turn of the conversation is expected for now: its history needs no memory.
  virtual void LeaveConversation(uint64_t /*k2*/) {}

  /// The worker's cache is empty, also of what other gateways put there.
  virtual void OnEmptied(const WorkerState& /*worker*/) {}

  /// Members, their memory or their health changed; also called about once a second.
  virtual void OnMembers(WorkerSpan /*workers*/, TimePoint /*now*/) {}

  /// Prefixes at home that would leave a worker's cache before long, unless they are used again;
  /// each is told of once until it is due again. `lifetime_s`: of the workers' caches, learned;
  /// what is believed of a worker's cache may say less.
  /// Called about once a second.
  virtual std::vector<Refresh> TakeRefreshes(WorkerSpan /*workers*/, double /*lifetime_s*/,
                                             TimePoint /*now*/) {
    return {};
  }

  struct Placed {
    uint64_t tokens = 0;
    uint32_t prefixes = 0;
  };
  virtual Placed placed_at(WorkerId) const { return {}; }

  // Agreement between gateways; policies without a table have nothing to tell.
  virtual std::vector<Delta> TakeDeltas() { return {}; }
  virtual std::vector<Delta> Snapshot() const { return {}; }
  virtual void Merge(const Delta& /*delta*/, TimePoint /*now*/) {}
};

/// What `worker` would give: cached tokens by the index, and the predicted time to first token.
/// `known`: bounds of the tokens from the prompt's start that are cached, known beside the index.
struct CachedBounds {
  uint32_t min = 0;
  uint32_t max = UINT32_MAX;
};
Candidate Assess(const Query& query, const WorkerState& worker, const Params& params,
                 const CachedBounds& known = {});

/// nullptr for a name that isn't in PolicyNames().
std::unique_ptr<Policy> MakePolicy(std::string_view name, const Params& params);
std::span<const std::string_view> PolicyNames();

}  // namespace hidane::routing
