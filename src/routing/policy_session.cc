#include "routing/policies.h"
#include "routing/rendezvous.h"

namespace hidane::routing {
namespace {

/// Rendezvous hash of the conversation (K2), whatever the load. Models session affinity: a ring
/// hash of a session header in Envoy, the session mode of vLLM's production-stack router. K2
/// stands for the header, so it needs none.
/// Source: https://www.envoyproxy.io/docs, "Ring hash";
/// github.com/vllm-project/production-stack, src/vllm_router/routers/routing_logic.py
class SessionPolicy final : public Policy {
 public:
  explicit SessionPolicy(const Params& params) : params_(params) {}
  std::string_view name() const override { return "session"; }

  Choice Choose(const Query& query, WorkerSpan workers,
                std::vector<Candidate>& considered) const override {
    WorkerState* const best =
        Highest(query.prompt.k2(), workers, [&](const WorkerState& w) { return query.MayTake(w); });
    return Chosen(query, best, params_, considered);
  }

 private:
  Params params_;
};

}  // namespace

std::unique_ptr<Policy> MakeSessionPolicy(const Params& params) {
  return std::make_unique<SessionPolicy>(params);
}

}  // namespace hidane::routing
