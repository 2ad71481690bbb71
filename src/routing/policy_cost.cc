#include "routing/policies.h"

namespace hidane::routing {
namespace {

/// Of all workers the one with the least predicted TTFT plus the prefill that the choice creates,
/// in turn among equals. Models NVIDIA Dynamo's KV router, whose cost adds the prefill blocks that
/// a worker would have to compute to the load it has. With one gateway and exact knowledge hard to
/// beat; several gateways that know only their own requests spoil each other's caches.
/// Source: github.com/ai-dynamo/dynamo, lib/kv-router/src/scheduling and docs/components/router
class CostPolicy final : public Policy {
 public:
  explicit CostPolicy(const Params& params) : params_(params) {}
  std::string_view name() const override { return "cost"; }

  Choice Choose(const Query& query, WorkerSpan workers,
                std::vector<Candidate>& considered) const override {
    considered.reserve(workers.size());
    WorkerState* const best = LeastInTurn(query, workers, next_, [&](const WorkerState& w) {
      const Candidate& c = considered.emplace_back(Assess(query, w, params_));
      return c.ttft.total() + c.ttft.prefill + c.decode_s;
    });
    return {best, Rule::kPolicy};
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

std::unique_ptr<Policy> MakeCostPolicy(const Params& params) {
  return std::make_unique<CostPolicy>(params);
}

}  // namespace hidane::routing
