#include "base/rng.h"
#include "routing/policies.h"

namespace hidane::routing {
namespace {

/// Two workers at random, the one with fewer KV tokens under way. Models the `power_of_two`
/// policy of the SGLang router and of vllm-router.
/// Source: Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing" (2001);
/// github.com/smg-project/smg, policies/power_of_two.rs
class PowerOfTwoPolicy final : public Policy {
 public:
  explicit PowerOfTwoPolicy(const Params& params)
      : params_(params), rng_(Mix64(params.seed ^ params.replica)) {}
  std::string_view name() const override { return "power_of_two"; }

  Choice Choose(const Query& query, WorkerSpan workers,
                std::vector<Candidate>& considered) override {
    takers_.clear();
    for (WorkerState* const w : workers) {
      if (query.MayTake(*w)) takers_.push_back(w);
    }
    if (takers_.empty()) return {};
    const size_t n = takers_.size();
    const size_t first = rng_.Below(n);
    const size_t second = n == 1 ? first : (first + 1 + rng_.Below(n - 1)) % n;  // another one
    WorkerState* best = takers_[first];
    WorkerState* const other = takers_[second];
    if (other->ledger.running_tokens() < best->ledger.running_tokens()) best = other;
    return Chosen(query, best, params_, considered);
  }

 private:
  Params params_;
  Rng rng_;
  std::vector<WorkerState*> takers_;  // scratch
};

}  // namespace

std::unique_ptr<Policy> MakePowerOfTwoPolicy(const Params& params) {
  return std::make_unique<PowerOfTwoPolicy>(params);
}

}  // namespace hidane::routing
