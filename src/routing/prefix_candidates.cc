// Whom a PrefixChoice compares, and what is known of each.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/rng.h"
#include "routing/prefix_choice.h"

namespace hidane::routing {

bool PrefixChoice::Consider(const WorkerState* worker, std::vector<Candidate>& considered) const {
  if (worker == nullptr || !query_.MayTake(*worker)) return false;
  if (std::ranges::find(considered, worker->spec.id, &Candidate::worker) == considered.end()) {
    Candidate& c = considered.emplace_back(Assess(query_, *worker, params_, KnownCached(*worker)));
    c.ttft.wait += ToldWait(*worker);
  }
  return true;
}

// Beside this gateway's index: the history of a conversation that lives there, less what all
// gateways' turns since its last one pushed out; or a prefix that another one sent.
CachedBounds PrefixChoice::KnownCached(const WorkerState& worker) const {
  CachedBounds known{.min = WarmedElsewhere(worker)};
  const bool lives = talk_ != nullptr && talk_->counted && talk_->worker == worker.key;
  if (!caches_.hears() || !lives) return known;
  const uint32_t left = caches_.Left(worker.key, query_.prompt.k2());
  known.max = query_.k1_tokens + left;
  if (left > 0 && talk_->stamp.replica != params_.replica) known.min = known.max;
  return known;
}

uint32_t PrefixChoice::WarmedElsewhere(const WorkerState& worker) const {
  if (everywhere_) return 0;
  const Account* const account = accounts_.Find(worker.spec.id);
  const bool warmed =
      account != nullptr && table_.WarmedElsewhere(query_.prompt.k1(), account->member);
  return warmed && worker.index.Find(query_.prompt).blocks == 0 ? query_.k1_tokens : 0;
}

// Something of the prompt, as far as is known.
bool PrefixChoice::Holds(const WorkerState& worker) const {
  return worker.index.Find(query_.prompt).blocks > 0 || WarmedElsewhere(worker) > 0;
}

// As Holds, and the requests of all gateways since have left it there. While they left room, what
// is not known of may have been there before they were told of.
bool PrefixChoice::StillHolds(const WorkerState& worker) const {
  if (!caches_.hears() || !caches_.EvictsNext(worker.key)) return Holds(worker);
  return caches_.Left(worker.key, query_.prompt.k1()) > 0;
}

// Prefills that other gateways told of. Too rough a number to drive a conversation off its worker.
double PrefixChoice::ToldWait(const WorkerState& worker) const {
  if (talk_ != nullptr && talk_->worker == worker.key) return 0;
  const Account* const account = accounts_.Find(worker.spec.id);
  return account == nullptr ? 0 : account->told_s(query_.now);
}

void PrefixChoice::ConsiderHomes(std::vector<Candidate>& considered) const {
  for (const WorkerId home : homes_) Consider(FindWorker(workers_, home), considered);
}

bool PrefixChoice::IsHome(WorkerId id) const {
  return everywhere_ || std::ranges::find(homes_, id) != homes_.end();
}

uint64_t PrefixChoice::Needed(const Account& account, uint64_t tokens) const {
  return tokens + (IsHome(account.member.id) ? 0 : query_.k1_tokens);
}

// Workers with room for `tokens` of history: those that would be filled alike, and the prefix's
// homes, which need not compute it.
void PrefixChoice::ConsiderRoomiest(uint64_t tokens, double within,
                                    std::vector<Candidate>& considered) const {
  const auto need = [&](const Account& a) { return Needed(a, tokens); };
  ConsiderAlike(accounts_.Roomiest(params_.compare_max, need), within, tokens, considered);
  for (const WorkerId home : RoomyHomes(tokens)) Consider(FindWorker(workers_, home), considered);
}

// The prefix's homes with room for `tokens`; the least filled, where there are more than
// compare_max.
std::vector<WorkerId> PrefixChoice::RoomyHomes(uint64_t tokens) const {
  std::vector<WorkerId> homes;
  for (const WorkerId home : homes_) {
    const Account* const account = accounts_.Find(home);
    if (account != nullptr && Accounts::HasRoom(*account, tokens)) homes.push_back(home);
  }
  if (homes.size() <= params_.compare_max) return homes;
  const auto fill = [this](WorkerId id) {
    return std::pair(Accounts::Fill(*accounts_.Find(id)), id);
  };
  std::ranges::partial_sort(homes, homes.begin() + params_.compare_max, {}, fill);
  homes.resize(params_.compare_max);
  return homes;
}

// The least filled, and those within a share `within` of `tokens` of it.
void PrefixChoice::ConsiderAlike(const Accounts::Filled& accounts, double within, uint64_t tokens,
                                 std::vector<Candidate>& considered) const {
  for (const auto& [fill, account] : accounts) {
    const double slack =
        within * static_cast<double>(tokens) / static_cast<double>(account->member.capacity_tokens);
    if (fill > accounts.front().first + slack) break;
    Consider(FindWorker(workers_, account->member.id), considered);
  }
}

double StaleSeconds(const JointCaches& caches, const WorkerState& worker, TimePoint now) {
  const auto next = caches.hears() ? caches.EvictsNext(worker.key) : worker.index.EvictsNext();
  return next ? Seconds(now - *next) : std::numeric_limits<double>::infinity();
}

// Of the workers that may take it the least filled, up to compare_max.
std::vector<WorkerState*> PrefixChoice::Usable() const {
  const auto need = [](const Account&) { return uint64_t{0}; };
  const auto may = [this](const Account& a, uint64_t) {
    const WorkerState* const w = FindWorker(workers_, a.member.id);
    return a.member.takes_new && w != nullptr && query_.MayTake(*w);
  };
  std::vector<WorkerState*> usable;
  for (const auto& [fill, account] : accounts_.LeastFilled(params_.compare_max, need, may)) {
    usable.push_back(FindWorker(workers_, account->member.id));
  }
  return usable;
}

// Of the workers that could begin about as soon as the earliest the one whose cache would forget
// what was not used for longest; of equals the least filled. nullptr: there is none, or none for
// which it would be much longer than for `stays`. Accounts say what was promised, of prefixes
// that nobody asks for any more too; caches say what is used.
WorkerState* PrefixChoice::Stalest(const WorkerState* stays) const {
  constexpr double kMuchLonger = 1.2;
  const auto wait = [this](const WorkerState* w) {
    return w->ledger.wait_s(query_.now) + accounts_.Find(w->spec.id)->told_s(query_.now);
  };
  const auto stale_s = [this](const WorkerState* w) {
    return StaleSeconds(caches_, *w, query_.now);
  };
  const std::vector<WorkerState*> usable = Usable();
  double earliest = std::numeric_limits<double>::infinity();
  for (const WorkerState* const w : usable) earliest = std::min(earliest, wait(w));
  if (stays != nullptr) earliest = std::min(earliest, wait(stays));
  const double prefill_s = workers_.front()->speed.PrefillSeconds(query_.k1_tokens, 0);
  const double latest = earliest + NearTie(prefill_s, params_);
  const bool may_stay = stays != nullptr && wait(stays) <= latest;
  double stalest_s = may_stay ? kMuchLonger * stale_s(stays) : -1;
  WorkerState* stalest = nullptr;
  for (WorkerState* const w : usable) {
    if (w == stays || wait(w) > latest || stale_s(w) <= stalest_s) continue;
    stalest_s = stale_s(w);
    stalest = w;
  }
  return stalest;
}

// Workers beside the homes.
void PrefixChoice::ConsiderOthers(std::vector<Candidate>& considered) const {
  if (everywhere_) return ConsiderLots(considered);
  if (!table_.CrowdsHomes(query_.prompt.k1())) return ConsiderSpare(considered);
  // Room or not: what a copy pushes out is asked for less than what it relieves.
  for (const WorkerState* const w : Usable()) Consider(w, considered);
}

// Where every worker is a home: all from a place of the conversation's own, so that ties spread, or
// some drawn by lot, half as many: the gain of a choice is with the first few (Mitzenmacher 2001),
// and each is read from cold memory.
void PrefixChoice::ConsiderLots(std::vector<Candidate>& considered) const {
  const size_t n = workers_.size();
  const uint64_t k2 = query_.prompt.k2();
  const uint64_t draw = Mix64(k2 ^ draw_);
  std::vector<const WorkerState*> lots;
  const bool all = n <= params_.compare_max;
  for (size_t i = 0; i < (all ? n : std::max(1u, params_.compare_max / 2)); ++i) {
    lots.push_back(workers_[all ? (k2 + i) % n : Mix64(draw + i) % n]);
  }
  considered.reserve(considered.size() + lots.size());
  for (const WorkerState* const w : lots) w->Prefetch();
  for (const WorkerState* const w : lots) w->index.PrefetchRun(query_.prompt);
  for (const WorkerState* const w : lots) Consider(w, considered);
}

// Those that have memory to spare, once this gateway's own queues at the homes are longer than
// computing the prefix anew would take twice: what others told of is too rough to spread prefixes
// by.
void PrefixChoice::ConsiderSpare(std::vector<Candidate>& considered) const {
  const double recompute_s = workers_.front()->speed.PrefillSeconds(query_.k1_tokens, 0);
  const bool queued = std::ranges::all_of(considered, [&](const Candidate& c) {
    return FindWorker(workers_, c.worker)->ledger.wait_s(query_.now) > 2 * recompute_s;
  });
  if (!queued) return;
  const auto spare =
      accounts_.Roomiest(params_.compare_max, [&](const Account& a) { return Needed(a, 0); });
  for (const auto& [fill, account] : spare) {
    if (fill > params_.spare_mark) break;
    Consider(FindWorker(workers_, account->member.id), considered);
  }
}

}  // namespace hidane::routing
