#pragma once
#include <memory>
#include <vector>

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

}  // namespace hidane::routing
