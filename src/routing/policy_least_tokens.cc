#include "routing/policies.h"

namespace hidane::routing {
namespace {

/// Fewest KV tokens under way, in turn among equals. Models least-loaded routers that count
/// tokens instead of requests, blind to what is cached: the load-aware mode of vLLM's
/// production-stack router and SMG's `least_load`.
/// Source: github.com/vllm-project/production-stack, src/vllm_router/routers/routing_logic.py;
/// github.com/smg-project/smg, policies/least_load.rs
class LeastTokensPolicy final : public Policy {
 public:
  explicit LeastTokensPolicy(const Params& params) : params_(params) {}
  std::string_view name() const override { return "least_tokens"; }

  Choice Choose(const Query& query, WorkerSpan workers,
                std::vector<Candidate>& considered) const override {
    WorkerState* const best = LeastInTurn(
        query, workers, next_, [](const WorkerState& w) { return w.ledger.running_tokens(); });
    return Chosen(query, best, params_, considered);
  }
  uint32_t Commit(const Query&, const Choice&) override {
    ++next_;
    return 0;
  }

 private:
  Params params_;
  size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Policy> MakeLeastTokensPolicy(const Params& params) {
  return std::make_unique<LeastTokensPolicy>(params);
}

}  // namespace hidane::routing
