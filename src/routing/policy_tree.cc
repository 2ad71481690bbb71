#include <algorithm>
#include <utility>
#include <vector>

#include "routing/policies.h"

namespace hidane::routing {
namespace {

/// An approximate radix tree of what each worker was sent. Balanced: the worker with the longest
/// match when it covers enough of the prompt, else the one with the smallest tree. Imbalanced:
/// the shortest queue. Models `cache_aware` of the SGLang router and its descendants, with their
/// defaults; the tree knows neither the workers' memory nor what they evict.
/// Source: github.com/smg-project/smg, policies/cache_aware.rs; the SGLang v0.4 announcement
class TreePolicy final : public Policy {
 public:
  explicit TreePolicy(const Params& params) : params_(params) {}
  std::string_view name() const override { return "tree"; }

  Choice Choose(const Query& query, WorkerSpan workers,
                std::vector<Candidate>& considered) const override {
    WorkerState* const worker =
        Balanced(query, workers) ? LongestMatch(query, workers) : ShortestQueue(query, workers);
    return Chosen(query, worker, params_, considered);
  }

  uint32_t Commit(const Query& query, const Choice& choice) override {
    const WorkerId id = choice.worker->spec.id;
    const auto at = std::ranges::lower_bound(trees_, id, {}, &Tree::first);
    at->second.Insert(query.prompt, 1, query.now);
    return 0;
  }

  void OnMembers(WorkerSpan workers, TimePoint) override {
    std::erase_if(trees_, [&](const Tree& t) { return FindWorker(workers, t.first) == nullptr; });
    for (const WorkerState* w : workers) {
      const auto at = std::ranges::lower_bound(trees_, w->spec.id, {}, &Tree::first);
      if (at != trees_.end() && at->first == w->spec.id) continue;
      trees_.emplace(at, w->spec.id, CacheIndex(kTreeBytes));
    }
  }

 private:
  using Tree = std::pair<WorkerId, CacheIndex>;
  static constexpr uint64_t kTreeBytes = uint64_t{1} << 26;
  static constexpr double kMatchMin = 0.3;  // of the prompt
  static constexpr uint32_t kImbalance = 64;
  static constexpr double kImbalanceTimes = 1.5;

  static bool Balanced(const Query& query, WorkerSpan workers) {
    uint32_t least = UINT32_MAX;
    uint32_t most = 0;
    for (const WorkerState* w : workers) {
      if (!query.MayTake(*w)) continue;
      least = std::min(least, w->ledger.in_flight());
      most = std::max(most, w->ledger.in_flight());
    }
    return most < least || most - least <= kImbalance || most <= kImbalanceTimes * least;
  }

  static WorkerState* ShortestQueue(const Query& query, WorkerSpan workers) {
    WorkerState* best = nullptr;
    for (WorkerState* const w : workers) {
      if (!query.MayTake(*w)) continue;
      if (best == nullptr || w->ledger.in_flight() < best->ledger.in_flight()) best = w;
    }
    return best;
  }

  WorkerState* LongestMatch(const Query& query, WorkerSpan workers) const {
    WorkerState* longest = nullptr;
    WorkerState* smallest = nullptr;
    uint32_t most_blocks = 0;
    uint64_t least_tokens = 0;
    for (size_t i = 0; i < workers.size(); ++i) {
      WorkerState* const w = workers[i];
      if (!query.MayTake(*w)) continue;
      const CacheIndex& tree = trees_[i].second;
      const uint32_t blocks = tree.Find(query.prompt).blocks;
      if (longest == nullptr || blocks > most_blocks) {
        longest = w;
        most_blocks = blocks;
      }
      if (smallest == nullptr || tree.tokens() < least_tokens) {
        smallest = w;
        least_tokens = tree.tokens();
      }
    }
    const double matched = query.prompt.BytesAt(most_blocks);
    return matched > kMatchMin * query.prompt.bytes() ? longest : smallest;
  }

  Params params_;
  std::vector<Tree> trees_;  // of the workers, in their order
};

}  // namespace

std::unique_ptr<Policy> MakeTreePolicy(const Params& params) {
  return std::make_unique<TreePolicy>(params);
}

}  // namespace hidane::routing
