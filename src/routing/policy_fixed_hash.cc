#include <algorithm>
#include <cmath>

#include "routing/policies.h"
#include "routing/rendezvous.h"

namespace hidane::routing {
namespace {

/// Rendezvous hash of the prompt's first `fixed_hash_tokens`, passed on when the worker has more
/// than kBound times the mean load. Models KubeAI's PrefixHash and SMG's `prefix_hash`: consistent
/// hashing with bounded loads of a fixed head.
/// Source: Mirrokni, Thorup and Zadimoghaddam 2016, arXiv 1608.01350;
/// github.com/smg-project/smg, policies/prefix_hash.rs
class FixedHashPolicy final : public Policy {
 public:
  explicit FixedHashPolicy(const Params& params) : params_(params) {}
  std::string_view name() const override { return "fixed_hash"; }

  Choice Choose(const Query& query, WorkerSpan workers,
                std::vector<Candidate>& considered) const override {
    const uint32_t most = Bound(query, workers);
    const auto allowed = [&](const WorkerState& w) {
      return query.MayTake(w) && w.ledger.in_flight() < most;
    };
    return Chosen(query, Highest(Head(query), workers, allowed), params_, considered);
  }

 private:
  // Whole blocks that fit the head, at least one.
  uint64_t Head(const Query& query) const {
    const auto& ends = query.prompt.ends;
    const auto head = static_cast<uint32_t>(params_.fixed_hash_tokens / query.tokens_per_byte);
    const size_t blocks = std::ranges::upper_bound(ends, head) - ends.begin();
    return query.prompt.HashAt(std::max<size_t>(blocks, ends.empty() ? 0 : 1));
  }

  // Requests that a worker may have, this one counted; 0 when none may take it.
  static uint32_t Bound(const Query& query, WorkerSpan workers) {
    constexpr double kBound = 1.25;
    uint32_t in_flight = 1;
    uint32_t takers = 0;
    for (const WorkerState* w : workers) {
      if (!query.MayTake(*w)) continue;
      in_flight += w->ledger.in_flight();
      ++takers;
    }
    return takers == 0 ? 0 : static_cast<uint32_t>(std::ceil(kBound * in_flight / takers));
  }

  Params params_;
};

}  // namespace

std::unique_ptr<Policy> MakeFixedHashPolicy(const Params& params) {
  return std::make_unique<FixedHashPolicy>(params);
}

}  // namespace hidane::routing
