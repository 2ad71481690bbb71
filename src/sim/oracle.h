#pragma once
#include <functional>
#include <memory>

#include "routing/policy.h"
#include "sim/engine.h"

namespace hidane::sim {

/// The all-knowing gateway of the tables (`policy` = `oracle`): takes, of all workers, the least
/// predicted time to first token plus the prefill that the choice creates, both by the engines'
/// true state and the step model itself. What a product cannot have; a row to measure others by.
/// It is greedy, not optimal: a policy may pass it.
///
/// `engine_of` gives a worker's engine, and outlives the policy with them.
std::unique_ptr<routing::Policy> MakeOracle(std::function<const Engine&(WorkerId)> engine_of);

}  // namespace hidane::sim
