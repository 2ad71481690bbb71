#include <algorithm>

#include "base/rng.h"
#include "routing/placement.h"
#include "routing/policies.h"

namespace hidane::routing {
namespace {

/// Prefix to homes by memory, choice among the homes by predicted TTFT: docs/placement.md. The
/// default, and what the other policies are compared with.
class PrefixPolicy final : public Policy {
 public:
  explicit PrefixPolicy(const Params& params)
      : params_(params), table_(params), conversations_(params.conversations_max) {}

  std::string_view name() const override { return "prefix"; }
  Choice Choose(const Query& query, WorkerSpan workers,
                std::vector<Candidate>& considered) override;
  void OnMembers(WorkerSpan workers, TimePoint now) override;
  Placed placed_at(WorkerId id) const override {
    return {table_.assigned_tokens(id), table_.prefixes_at(id)};
  }

 private:
  Choice ChooseAnywhere(const Query& query, WorkerSpan workers, std::vector<Candidate>& considered);
  Choice ChooseHome(const Query& query, WorkerSpan workers, std::vector<Candidate>& considered);
  Choice Flee(const Query& query, WorkerSpan workers, std::vector<Candidate>& considered) const;
  void Consider(const Query& query, const WorkerState* worker,
                std::vector<Candidate>& considered) const;

  Params params_;
  PlacementTable table_;
  LruMap<std::optional<WorkerId>> conversations_;  // of short prefixes: K2 -> where it was last
  std::vector<WorkerId> members_;
  uint64_t draws_ = 0;
};

void PrefixPolicy::OnMembers(WorkerSpan workers, TimePoint now) {
  for (const WorkerId id : members_) {
    if (FindWorker(workers, id) == nullptr) table_.RemoveWorker(id);
  }
  members_.clear();
  for (const WorkerState* w : workers) {
    members_.push_back(w->spec.id);
    table_.PutWorker(
        {.id = w->spec.id,
         .key = w->key,
         .capacity_tokens = w->capacity_tokens,
         .reserve_tokens = w->reserve.Tokens(w->capacity_tokens, params_.running_reserve),
         .takes_new = w->MayTake(now)});
  }
}

// A prefix in the table stays there, so that a learned rate near the bound flips nothing.
Choice PrefixPolicy::Choose(const Query& query, WorkerSpan workers,
                            std::vector<Candidate>& considered) {
  const double recompute_s = query.k1_tokens / workers.front()->rate.tokens_per_s();
  const bool is_short = recompute_s < params_.short_k1_s && !table_.Knows(query.prompt.k1());
  return is_short ? ChooseAnywhere(query, workers, considered)
                  : ChooseHome(query, workers, considered);
}

void PrefixPolicy::Consider(const Query& query, const WorkerState* worker,
                            std::vector<Candidate>& considered) const {
  if (worker == nullptr || !query.MayTake(*worker)) return;
  if (std::ranges::find(considered, worker->spec.id, &Candidate::worker) != considered.end()) {
    return;
  }
  considered.push_back(Assess(query, *worker, params_));
}

// Every worker is a home: the conversation's last one is compared with some others.
Choice PrefixPolicy::ChooseAnywhere(const Query& query, WorkerSpan workers,
                                    std::vector<Candidate>& considered) {
  const uint64_t k2 = query.prompt.k2();
  std::optional<WorkerId>& last = conversations_.Touch(k2);
  const size_t n = workers.size();
  considered.reserve(std::min<size_t>(n, params_.compare_max + 1));
  if (last) Consider(query, FindWorker(workers, *last), considered);
  if (n <= params_.compare_max) {  // all, from a place of the conversation's own: ties spread
    for (size_t i = 0; i < n; ++i) Consider(query, workers[(k2 + i) % n], considered);
  } else {
    const uint64_t draw = Mix64(k2 ^ ++draws_);
    for (uint32_t i = 0; i < params_.compare_max; ++i) {
      Consider(query, workers[Mix64(draw + i) % n], considered);
    }
  }
  if (considered.empty()) return Flee(query, workers, considered);
  const Candidate& best = LeastTtft(considered, params_);
  const bool sticky = best.worker == last && best.cached_tokens > query.k1_tokens;
  last = best.worker;
  return {FindWorker(workers, best.worker), sticky ? Rule::kSticky : Rule::kBalance};
}

Choice PrefixPolicy::ChooseHome(const Query& query, WorkerSpan workers,
                                std::vector<Candidate>& considered) {
  const double prefill_s = query.k1_tokens / workers.front()->rate.tokens_per_s();
  // The table asks in the order of ids, which is that of the workers.
  const auto wait = [&, next = size_t{0}](WorkerId id) mutable {
    if (next == workers.size() || workers[next]->spec.id != id) {
      next = std::ranges::lower_bound(workers, id, {},
                                      [](const WorkerState* w) { return w->spec.id; }) -
             workers.begin();
    }
    return workers[next++]->ledger.wait_s(query.now);
  };
  const PlacementTable::Sight sight =
      table_.See(query.prompt.k1(), query.k1_tokens, prefill_s, wait, query.now);
  for (const WorkerId home : sight.homes) {
    Consider(query, FindWorker(workers, home), considered);
  }
  if (considered.empty()) return Flee(query, workers, considered);
  const Candidate& best = LeastTtft(considered, params_);
  const bool holds_more = best.cached_tokens > query.k1_tokens;
  const Rule rule = sight.placed              ? Rule::kPlaced
                    : sight.homes.size() == 1 ? Rule::kHome
                    : holds_more              ? Rule::kSticky
                                              : Rule::kBalance;
  return {FindWorker(workers, best.worker), rule};
}

// Every home is out. The refuge is the same for all requests of the prefix, and nothing is
// written down, so they go back home as soon as it returns.
Choice PrefixPolicy::Flee(const Query& query, WorkerSpan workers,
                          std::vector<Candidate>& considered) const {
  const WorkerId* refuge = table_.Refuge(query.prompt.k1(), query.k1_tokens, [&](WorkerId id) {
    const WorkerState* w = FindWorker(workers, id);
    return w != nullptr && query.MayTake(*w);
  });
  if (refuge == nullptr) return {};
  WorkerState* const worker = FindWorker(workers, *refuge);
  considered.push_back(Assess(query, *worker, params_));
  return {worker, Rule::kFailover};
}

}  // namespace

std::unique_ptr<Policy> MakePrefixPolicy(const Params& params) {
  return std::make_unique<PrefixPolicy>(params);
}

}  // namespace hidane::routing
