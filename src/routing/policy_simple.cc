// Policies to compare with; each names the system that it models.
#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "routing/policies.h"

namespace hidane::routing {
namespace {

Choice Chosen(const Query& query, WorkerState* worker, const Params& params,
              std::vector<Candidate>& considered) {
  if (worker != nullptr) considered.push_back(Assess(query, *worker, params));
  return {worker, Rule::kPolicy};
}

/// In turn. Models nginx's default upstream method and a Kubernetes Service.
class RoundRobinPolicy final : public Policy {
 public:
  explicit RoundRobinPolicy(const Params& params) : params_(params) {}
  std::string_view name() const override { return "round_robin"; }

  Choice Choose(const Query& query, WorkerSpan workers,
                std::vector<Candidate>& considered) override {
    for (size_t i = 0; i < workers.size(); ++i) {
      WorkerState* const w = workers[next_++ % workers.size()];
      if (query.MayTake(*w)) return Chosen(query, w, params_, considered);
    }
    return {};
  }

 private:
  Params params_;
  size_t next_ = 0;
};

/// Fewest KV tokens under way, in turn among equals. Models least-loaded routers that count
/// tokens instead of requests, blind to what is cached: the load-aware mode of vLLM's
/// production-stack router and of LiteLLM.
class LeastTokensPolicy final : public Policy {
 public:
  explicit LeastTokensPolicy(const Params& params) : params_(params) {}
  std::string_view name() const override { return "least_tokens"; }

  Choice Choose(const Query& query, WorkerSpan workers,
                std::vector<Candidate>& considered) override {
    WorkerState* best = nullptr;
    ++next_;
    for (size_t i = 0; i < workers.size(); ++i) {
      WorkerState* const w = workers[(next_ + i) % workers.size()];
      if (!query.MayTake(*w)) continue;
      if (best == nullptr || w->ledger.running_tokens() < best->ledger.running_tokens()) best = w;
    }
    return Chosen(query, best, params_, considered);
  }

 private:
  Params params_;
  size_t next_ = 0;
};

/// Rendezvous hash of the prompt's first kHeadTokens, passed on when the worker has more than
/// kBound times the mean load. Models KubeAI's PrefixHash: consistent hashing with bounded
/// loads (Mirrokni, Thorup and Zadimoghaddam 2016, arXiv 1608.01350) of a fixed head.
class FixedHashPolicy final : public Policy {
 public:
  explicit FixedHashPolicy(const Params& params) : params_(params) {}
  std::string_view name() const override { return "fixed_hash"; }

  Choice Choose(const Query& query, WorkerSpan workers,
                std::vector<Candidate>& considered) override {
    const auto& ends = query.prompt.ends;
    const auto head = static_cast<uint32_t>(kHeadTokens / query.tokens_per_byte);
    const size_t blocks = std::ranges::upper_bound(ends, head) - ends.begin();
    const uint64_t key = query.prompt.HashAt(std::max<size_t>(blocks, ends.empty() ? 0 : 1));

    uint32_t in_flight = 1;
    uint32_t takers = 0;
    for (const WorkerState* w : workers) {
      if (!query.MayTake(*w)) continue;
      in_flight += w->ledger.in_flight();
      ++takers;
    }
    if (takers == 0) return {};
    const auto most = static_cast<uint32_t>(std::ceil(kBound * in_flight / takers));
    WorkerState* best = nullptr;
    uint64_t best_score = 0;
    for (WorkerState* w : workers) {
      const uint64_t score = Mix64(key ^ w->key);
      if (!query.MayTake(*w) || w->ledger.in_flight() >= most) continue;
      if (best == nullptr || score > best_score) {
        best = w;
        best_score = score;
      }
    }
    return Chosen(query, best, params_, considered);
  }

 private:
  static constexpr double kHeadTokens = 512;
  static constexpr double kBound = 1.25;
  Params params_;
};

}  // namespace

std::unique_ptr<Policy> MakeRoundRobinPolicy(const Params& params) {
  return std::make_unique<RoundRobinPolicy>(params);
}
std::unique_ptr<Policy> MakeLeastTokensPolicy(const Params& params) {
  return std::make_unique<LeastTokensPolicy>(params);
}
std::unique_ptr<Policy> MakeFixedHashPolicy(const Params& params) {
  return std::make_unique<FixedHashPolicy>(params);
}

}  // namespace hidane::routing
