#include "base/rng.h"
#include "routing/policies.h"

namespace hidane::routing {
namespace {

/// Any worker with equal chance. Models Envoy's RANDOM cluster policy.
/// Source: https://www.envoyproxy.io/docs, "Supported load balancers"
class RandomPolicy final : public Policy {
 public:
  explicit RandomPolicy(const Params& params)
      : params_(params), seed_(Mix64(params.seed ^ params.replica)) {}
  std::string_view name() const override { return "random"; }

  Choice Choose(const Query& query, WorkerSpan workers,
                std::vector<Candidate>& considered) const override {
    Rng rng(Mix64(seed_ ^ draws_));
    WorkerState* drawn = nullptr;
    uint64_t takers = 0;
    for (WorkerState* const w : workers) {  // reservoir of one: no list of those that may take it
      if (query.MayTake(*w) && rng.Below(++takers) == 0) drawn = w;
    }
    return Chosen(query, drawn, params_, considered);
  }
  uint32_t Commit(const Query&, const Choice&) override {
    ++draws_;
    return 0;
  }

 private:
  Params params_;
  uint64_t seed_;
  uint64_t draws_ = 0;
};

}  // namespace

std::unique_ptr<Policy> MakeRandomPolicy(const Params& params) {
  return std::make_unique<RandomPolicy>(params);
}

}  // namespace hidane::routing
