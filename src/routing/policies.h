#pragma once
#include <memory>
#include <vector>

#include "base/rng.h"
#include "routing/policy.h"

namespace hidane::routing {

std::unique_ptr<Policy> MakePrefixPolicy(const Params& params);
std::unique_ptr<Policy> MakeRoundRobinPolicy(const Params& params);
std::unique_ptr<Policy> MakeRandomPolicy(const Params& params);
std::unique_ptr<Policy> MakeLeastTokensPolicy(const Params& params);
std::unique_ptr<Policy> MakePowerOfTwoPolicy(const Params& params);
std::unique_ptr<Policy> MakeSessionPolicy(const Params& params);
std::unique_ptr<Policy> MakeFixedHashPolicy(const Params& params);
std::unique_ptr<Policy> MakeTreePolicy(const Params& params);
std::unique_ptr<Policy> MakeCostPolicy(const Params& params);

/// How a policy ends that compared no candidates: `worker` (nullptr: none may take the request)
/// is assessed, so that the decision shows what was expected of it.
Choice Chosen(const Query& query, WorkerState* worker, const Params& params,
              std::vector<Candidate>& considered);

/// Of the workers that may take it the one with the least `cost(const WorkerState&)`; among equals
/// the first from the `turn`-th on, so that equals take turns. nullptr: none may take it.
template <class CostOf>
WorkerState* LeastInTurn(const Query& query, WorkerSpan workers, size_t turn, CostOf&& cost) {
  WorkerState* best = nullptr;
  decltype(cost(*workers.front())) least{};
  for (size_t i = 0; i < workers.size(); ++i) {
    WorkerState* const w = workers[(turn + i) % workers.size()];
    if (!query.MayTake(*w)) continue;
    const auto its = cost(*w);
    if (best != nullptr && its >= least) continue;
    best = w;
    least = its;
  }
  return best;
}

/// One of the workers that may take it, each with equal chance, but not `except`; nullptr: there
/// is none.
WorkerState* Draw(const Query& query, WorkerSpan workers, Rng& rng,
                  const WorkerState* except = nullptr);

}  // namespace hidane::routing
