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
      : params_(params), seed_(Mix64(params.seed ^ params.replica)) {}
  std::string_view name() const override { return "power_of_two"; }

  Choice Choose(const Query& query, WorkerSpan workers,
                std::vector<Candidate>& considered) const override {
    Rng rng(Mix64(seed_ ^ draws_));
    WorkerState* const best = Draw(query, workers, rng);
    WorkerState* const other = Draw(query, workers, rng, best);
    const bool less =
        other != nullptr && other->ledger.running_tokens() < best->ledger.running_tokens();
    return Chosen(query, less ? other : best, params_, considered);
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

std::unique_ptr<Policy> MakePowerOfTwoPolicy(const Params& params) {
  return std::make_unique<PowerOfTwoPolicy>(params);
}

}  // namespace hidane::routing
