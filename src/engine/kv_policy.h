#pragma once
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "engine/engine.h"
#include "vtoken/budget_controller.h"
#include "vtoken/policy.h"

/// A request's `kv_policy` as the library's objects.
namespace hidane::engine {

/// kInvalidArgument whose `param` is kv_policy.name, .budget, .keep or .shared_prompt.
Status CheckKvPolicy(const KvPolicy& policy, uint64_t prompt_tokens);

/// REQUIRES: CheckKvPolicy has passed, and policy.evicts().
std::unique_ptr<vtoken::Policy> PolicyOf(const KvPolicy& policy);
vtoken::BudgetController BudgetOf(const KvPolicy& policy, const vtoken::PolicyTraits& traits);

/// The most KV slots that a request ever needs at once, its last token not computed.
/// REQUIRES: CheckKvPolicy has passed; prompt_tokens, max_tokens >= 1.
uint64_t SlotsNeeded(const KvPolicy& policy, uint32_t prompt_tokens, uint32_t max_tokens);

}  // namespace hidane::engine
