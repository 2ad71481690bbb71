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
        turns_(params.conversations_max) {
    table_.SetInUse(
        [this](uint64_t k1, const Member& member) { return talks_.LiveAt(k1, member.key); });
  }

  std::string_view name() const override { return "prefix"; }

  Choice Choose(const Query& query, WorkerSpan workers,
                std::vector<Candidate>& considered) const override {
    return PrefixChoice(params_, accounts_, table_, talks_, turns_, query, workers, draws_)
        .Make(considered);
  }
  uint32_t Commit(const Query& query, const Choice& choice) override;

  void LeaveConversation(uint64_t k2) override { talks_.Leave(k2); }
  void OnEmptied(const WorkerState& worker) override {
    table_.Emptied(worker.key);
    turns_.Forget(worker.key);
  }
  void OnMembers(WorkerSpan workers, TimePoint now) override;
  std::vector<Refresh> TakeRefreshes(WorkerSpan workers, double lifetime_s,
                                     TimePoint now) override {
    const auto due = [&](uint64_t k1, const Kept& kept, WorkerId home) {  // turns do it themselves
      return RefreshDue(kept, *FindWorker(workers, home), lifetime_s, now) && !talks_.GoOn(k1);
    };
    return table_.TakeRefreshes(due, now);
  }
  Placed placed_at(WorkerId id) const override {
    const Account* const a = accounts_.Find(id);
    return a == nullptr ? Placed{} : Placed{.tokens = a->assigned(), .prefixes = a->homes};
  }

  std::vector<Delta> TakeDeltas() override { return log_.Take(); }
  std::vector<Delta> Snapshot() const override;
  void Merge(const Delta& delta, TimePoint now) override {
    if (delta.kind != Delta::Kind::kConversation) return table_.Merge(delta, now);
    if (talks_.Merge(delta, now) && delta.tokens > 0) Hear(delta, now);
  }

 private:
  void Hear(const Delta& turn, TimePoint now);

  Params params_;
  Accounts accounts_;
  DeltaLog log_;
  PlacementTable table_;
  Conversations talks_;
  TurnCaches turns_;
  uint64_t draws_ = 0;
};

// Where every home is out nothing is written down, so that requests go back as soon as one
// returns; but a conversation whose worker is lost has moved.
uint32_t PrefixPolicy::Commit(const Query& query, const Choice& choice) {
  const WorkerState& worker = *choice.worker;
  const uint64_t k1 = query.prompt.k1();
  ++draws_;
  if (!LivesEverywhere(query, worker, table_, params_)) {
    if (choice.rule == Rule::kFailover) {
      table_.See(k1, query.k1_tokens, query.now);
    } else {
      table_.Serve(k1, query.k1_tokens, worker.spec.id, query.now);
    }
  }
  const uint32_t own = query.prompt_tokens - query.k1_tokens;
  talks_.Serve({.k1 = k1,
                .k2 = query.prompt.k2(),
                .worker = worker.key,
                .tokens = own,
                .has_history = query.has_history()},
               query.now);
  if (!talks_.Find(query.prompt.k2())->counted) return 0;
  turns_.Use({.worker = worker.key,
              .k1 = k1,
              .k2 = query.prompt.k2(),
              .k1_tokens = query.k1_tokens,
              .tokens = own},
             worker.capacity_tokens);
  return own;
}

// Another gateway's turn uses its prefix, and memory where it went, as one's own would.
void PrefixPolicy::Hear(const Delta& turn, TimePoint now) {
  table_.Use(turn.k1, turn.worker, now);
  const Account* const account = accounts_.FindKey(turn.worker);
  if (account == nullptr) return;
  turns_.Hear({.worker = turn.worker,
               .k1 = turn.k1,
               .k2 = turn.key,
               .k1_tokens = table_.Tokens(turn.k1),
               .tokens = turn.tokens},
              account->member.capacity_tokens);
}

void PrefixPolicy::OnMembers(WorkerSpan workers, TimePoint now) {
  std::vector<WorkerId> gone;
  for (const Account& a : accounts_) {
    const WorkerState* const w = FindWorker(workers, a.member.id);
    if (w == nullptr || w->key != a.member.key) turns_.Forget(a.member.key);
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
