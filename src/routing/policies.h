#pragma once
#include <memory>

#include "routing/policy.h"

namespace hidane::routing {

std::unique_ptr<Policy> MakePrefixPolicy(const Params& params);
std::unique_ptr<Policy> MakeRoundRobinPolicy(const Params& params);
std::unique_ptr<Policy> MakeLeastTokensPolicy(const Params& params);
std::unique_ptr<Policy> MakeFixedHashPolicy(const Params& params);

}  // namespace hidane::routing
