#include "engine/kv_policy.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"

namespace hidane::engine {
namespace {

vtoken::BudgetConfig ConfigOf(const KvPolicy& policy) {
  return {.cap = policy.budget, .keep = policy.keep};
}

Status Renamed(Error error, const char* param) {
  error.param = param;
  return Fail(std::move(error));
}

}  // namespace

Status CheckKvPolicy(const KvPolicy& policy, uint64_t prompt_tokens) {
  if (!policy.evicts()) return {};
  auto made = vtoken::MakePolicy(policy.name);
  if (!made) return Renamed(made.error(), "kv_policy.name");
  auto budget = vtoken::BudgetController::Make(ConfigOf(policy), (*made)->traits());
  if (!budget) {
    const bool keep = budget.error().param == "keep";
    return Renamed(budget.error(), keep ? "kv_policy.keep" : "kv_policy.budget");
  }
  if (policy.budget == 0 && policy.keep == 1) {
    return Fail(Code::kInvalidArgument, "a policy needs a budget, or a share to keep below 1",
                "kv_policy.budget");
  }
  if (policy.shared_prompt > prompt_tokens) {
    return Fail(
        Code::kInvalidArgument,
        fmt::format("{} shared tokens in a prompt of {}", policy.shared_prompt, prompt_tokens),
        "kv_policy.shared_prompt");
  }
  return {};
}

std::unique_ptr<vtoken::Policy> PolicyOf(const KvPolicy& policy) {
  auto made = vtoken::MakePolicy(policy.name);
  HIDANE_ASSERT(made);
  return std::move(*made);
}

vtoken::BudgetController BudgetOf(const KvPolicy& policy, const vtoken::PolicyTraits& traits) {
  auto made = vtoken::BudgetController::Make(ConfigOf(policy), traits);
  HIDANE_ASSERT(made);
  return std::move(*made);
}

uint64_t SlotsNeeded(const KvPolicy& policy, uint32_t prompt_tokens, uint32_t max_tokens) {
  const uint32_t end = prompt_tokens + max_tokens - 1;
  if (!policy.evicts()) return end;
  const auto budget = BudgetOf(policy, PolicyOf(policy)->traits());
  vtoken::Lengths at{prompt_tokens, prompt_tokens, prompt_tokens};
  uint64_t most = prompt_tokens;
  for (uint32_t kept = 0;;) {
    if (const auto keep = budget.KeepAt(at)) {
      at.live = *keep;
      if (policy.budget != 0 && kept == at.live) return most;  // it has come to its cap
      kept = at.live;
    }
    const uint32_t next = std::min(budget.NextRun(at), end);
    at.live += next - at.logical;
    at.logical = next;
    most = std::max<uint64_t>(most, at.live);
    if (next == end) return most;
  }
}

}  // namespace hidane::engine
