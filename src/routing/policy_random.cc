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
    return Chosen(query, Draw(query, workers, rng), params_, considered);
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
