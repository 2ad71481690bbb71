#pragma once
#include <functional>
#include <memory>

#include "routing/params.h"

namespace hidane::routing {

class Policy;

/// Makes the policy of one pool.
using PolicyMaker = std::function<std::unique_ptr<Policy>(const Params&)>;

}  // namespace hidane::routing
