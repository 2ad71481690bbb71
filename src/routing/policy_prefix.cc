#include <algorithm>

#include "routing/conversations.h"
#include "routing/placement.h"
#include "routing/policies.h"
#include "routing/prefix_choice.h"

namespace hidane::routing {
namespace {

/// Prefixes and conversations to homes by memory, choice among the homes by predicted TTFT:
/// docs/placement.md. The default, and what the other policies are compared with.
class PrefixPolicy final : public Policy {
 public:
  explicit PrefixPolicy(const Params& params)
      : params_(params),
        accounts_(params),
        log_(params.replica),
        table_(params, accounts_, log_),
        talks_(params, accounts_, log_),
        caches_(params.conversations_max) {
    table_.SetInUse(
        [this](uint64_t k1, const Member& member) { return talks_.LiveAt(k1, member.key); });
  }

  std::string_view name() const override { return "prefix"; }

  Choice Choose(const Query& query, WorkerSpan workers,
                std::vector<Candidate>& considered) const override {
    return PrefixChoice(params_, accounts_, table_, talks_, caches_, query, workers, draws_)
        .Make(considered);
  }
  uint32_t Commit(const Query& query, const Choice& choice) override;

  void LeaveConversation(uint64_t k2) override { talks_.Leave(k2); }
  void OnEmptied(const WorkerState& worker) override {
    table_.Emptied(worker.key);
    caches_.Forget(worker.key);
  }
  void OnMembers(WorkerSpan workers, TimePoint now) override;
  std::vector<Refresh> TakeRefreshes(WorkerSpan workers, double lifetime_s,
                                     TimePoint now) override {
    const auto due = [&](uint64_t k1, const Kept& kept, WorkerId home) {  // turns do it themselves
      const WorkerState& worker = *FindWorker(workers, home);
      const double stale_s = StaleSeconds(caches_, worker, now);
      return RefreshDue(kept, worker, std::min(lifetime_s, stale_s), now) && !talks_.GoOn(k1);
    };
    return table_.TakeRefreshes(due, now);
  }
  Placed placed_at(WorkerId id) const override {
    const Account* const a = accounts_.Find(id);
    return a == nullptr ? Placed{} : Placed{.tokens = a->assigned(), .prefixes = a->homes};
  }

  std::vector<Delta> TakeDeltas() override { return log_.Take(); }
  std::vector<Delta> Snapshot() const override;
  void Merge(const Delta& delta, TimePoint now) override;

 private:
  void Remember(const JointCaches::Use& use);

  Params params_;
  Accounts accounts_;
  DeltaLog log_;
  PlacementTable table_;
  Conversations talks_;
  JointCaches caches_;
  uint64_t draws_ = 0;
};

uint32_t PrefixPolicy::Commit(const Query& query, const Choice& choice) {
  const WorkerState& worker = *choice.worker;
  const uint64_t k1 = query.prompt.k1();
  ++draws_;
  const bool everywhere = LivesEverywhere(query, worker, table_, params_);
  if (!everywhere && choice.rule == Rule::kFailover && params_.silent_peers) {
    table_.See(k1, query.k1_tokens, query.now);  // others would not hear of the refuge
  } else if (!everywhere) {
    if (choice.moves) table_.Move(k1, worker.spec.id);
    table_.Serve(k1, query.k1_tokens, worker.spec.id, query.now);
  }
  const uint64_t k2 = query.prompt.k2();
  const uint32_t own = query.prompt_tokens - query.k1_tokens;
  talks_.Serve({k1, k2, worker.key, own, query.has_history()}, query.now);
  const bool counted = talks_.Find(k2)->counted;
  if (!counted && (everywhere || !caches_.hears())) return 0;
  Remember({worker.key, k1, counted ? k2 : 0, query.k1_tokens, own, query.now});
  if (!counted) log_.PushUse(k1, worker.key, own);
  return counted ? own : 0;
}

// What others tell of uses its prefix, and memory where it went, as one's own requests do.
void PrefixPolicy::Merge(const Delta& delta, TimePoint now) {
  caches_.SetHears();
  const bool turn = delta.kind == Delta::Kind::kConversation;
  const bool use = delta.kind == Delta::Kind::kUse;
  if (!turn && !use) return table_.Merge(delta, now);
  if (turn && (!talks_.Merge(delta, now) || delta.tokens == 0)) return;
  const uint64_t k1 = turn ? delta.k1 : delta.key;
  table_.Use(k1, delta.worker, now);
  Remember({delta.worker, k1, turn ? delta.key : 0, table_.Tokens(k1), delta.tokens, now});
}

void PrefixPolicy::Remember(const JointCaches::Use& use) {
  const Account* const account = accounts_.FindKey(use.worker);
  if (account != nullptr) caches_.Add(use, account->member.capacity_tokens);
}

void PrefixPolicy::OnMembers(WorkerSpan workers, TimePoint now) {
  std::vector<WorkerId> gone;
  for (const Account& a : accounts_) {
    const WorkerState* const w = FindWorker(workers, a.member.id);
    if (w == nullptr || w->key != a.member.key) caches_.Forget(a.member.key);
    if (w == nullptr) gone.push_back(a.member.id);
  }
  for (const WorkerId id : gone) table_.RemoveWorker(id);
  for (const WorkerState* w : workers) {
    const Account* const account = accounts_.Find(w->spec.id);
    const bool joins = account == nullptr || account->member.key != w->key;
    table_.PutWorker(
        {.id = w->spec.id,
         .key = w->key,
         .capacity_tokens = w->capacity_tokens,
         .reserve_tokens = w->reserve.Tokens(w->capacity_tokens, params_.running_reserve),
         .takes_new = w->MayTake(now)});
    if (joins) talks_.OnJoined(w->key);
  }
  talks_.Release(now);
  if (!workers.empty()) table_.SetPrefillRate(workers.front()->speed.tokens_per_s());
}

std::vector<Delta> PrefixPolicy::Snapshot() const {
  std::vector<Delta> deltas;
  table_.AppendSnapshot(deltas);
  talks_.AppendSnapshot(deltas);
  return deltas;
}

}  // namespace

std::unique_ptr<Policy> MakePrefixPolicy(const Params& params) {
  return std::make_unique<PrefixPolicy>(params);
}

}  // namespace hidane::routing
