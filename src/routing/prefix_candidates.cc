// Whom a PrefixChoice compares, and what is known of each.
#include <algorithm>
#include <iterator>
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

// In the order given. Workers of a large fleet are in cold memory: all reads begin at once.
void PrefixChoice::ConsiderEach(const std::vector<WorkerState*>& workers,
                                std::vector<Candidate>& considered) const {
  considered.reserve(considered.size() + workers.size());
  for (const WorkerState* const w : workers) w->Prefetch();
  for (const WorkerState* const w : workers) w->index.PrefetchRun(query_.prompt);
  for (const WorkerState* const w : workers) Consider(w, considered);
}

void PrefixChoice::ConsiderFilled(std::span<const Accounts::Filled::value_type> accounts,
                                  std::vector<Candidate>& considered) const {
  std::vector<WorkerState*> workers;
  workers.reserve(accounts.size());
  for (const auto& [fill, account] : accounts) {
    if (WorkerState* const w = FindWorker(workers_, account->member.id)) workers.push_back(w);
  }
  ConsiderEach(workers, considered);
}

void PrefixChoice::ConsiderHomes(std::vector<Candidate>& considered) const {
  ConsiderEach(SomeHomes(), considered);
  if (!considered.empty() || lots_.empty()) return;
  for (const WorkerId home : homes_) Consider(FindWorker(workers_, home), considered);
}

// The homes that are compared: all, or of many some, as the gain of a choice is with the first few
// (Mitzenmacher 2001).
std::vector<WorkerState*> PrefixChoice::SomeHomes() const {
  const std::span<const WorkerId> ids = lots_.empty() ? homes_ : lots_;
  std::vector<WorkerState*> some;
  some.reserve(ids.size());
  for (const WorkerId id : ids) {
    if (WorkerState* const w = FindWorker(workers_, id)) some.push_back(w);
  }
  return some;
}

// The i-th place of `n` by lot, anew for each request.
size_t PrefixChoice::Lot(size_t i, size_t n) const {
  return Mix64(Mix64(query_.prompt.k2() ^ draw_) + i) % n;
}

bool PrefixChoice::IsHome(const Member& member) const {
  if (homes_.size() > params_.compare_max) return table_.IsHome(query_.prompt.k1(), member);
  return std::ranges::find(homes_, member.id) != homes_.end();
}

namespace {

bool FillsLess(const Accounts::Filled::value_type& a, const Accounts::Filled::value_type& b) {
  return std::pair(a.first, a.second->member.id) < std::pair(b.first, b.second->member.id);
}

}  // namespace

// The homes that `may` take `tokens` more; of many those that would be least filled.
Accounts::Filled PrefixChoice::LeastFilledHomes(uint64_t tokens, const May& may) const {
  if (homes_.size() > most_) {
    const auto is_home = [&](const Account& a, uint64_t t) {
      return may(a, t) && IsHome(a.member);
    };
    return accounts_.LeastFilled(most_, tokens, is_home);
  }
  Accounts::Filled homes;
  for (const WorkerId home : homes_) {
    const Account* const a = accounts_.Find(home);
    if (a != nullptr && may(*a, tokens)) homes.emplace_back(Accounts::Fill(*a, tokens), a);
  }
  std::ranges::sort(homes, FillsLess);
  return homes;
}

// Of `homes` and of the other workers that `may` take the prefix and `tokens` more, those that
// would be least filled.
Accounts::Filled PrefixChoice::WithOthers(const Accounts::Filled& homes, uint64_t tokens,
                                          const May& may) const {
  if (homes_.size() == accounts_.size()) return homes;
  Accounts::Filled all = homes;
  const auto no_home = [&](const Account& a, uint64_t t) { return may(a, t) && !IsHome(a.member); };
  const uint64_t prefix = everywhere_ ? 0 : query_.k1_tokens;
  std::ranges::copy(accounts_.LeastFilled(most_, tokens + prefix, no_home),
                    std::back_inserter(all));
  std::ranges::sort(all, FillsLess);
  all.resize(std::min(all.size(), most_));
  return all;
}

// Workers with room for `tokens` of history: those that would be filled alike, and the prefix's
// homes, which need not compute it.
void PrefixChoice::ConsiderRoomiest(uint64_t tokens, double within,
                                    std::vector<Candidate>& considered) const {
  const Accounts::Filled homes = LeastFilledHomes(tokens, Accounts::HasRoom);
  ConsiderAlike(WithOthers(homes, tokens, Accounts::HasRoom), within, tokens, considered);
  ConsiderFilled(homes, considered);
}

// The least filled, and those within a share `within` of `tokens` of it.
void PrefixChoice::ConsiderAlike(const Accounts::Filled& accounts, double within, uint64_t tokens,
                                 std::vector<Candidate>& considered) const {
  const auto alike = [&](const Accounts::Filled::value_type& filled) {
    const auto capacity = static_cast<double>(filled.second->member.capacity_tokens);
    const double slack = within * static_cast<double>(tokens) / capacity;
    return filled.first <= accounts.front().first + slack;
  };
  ConsiderFilled({accounts.begin(), std::ranges::find_if_not(accounts, alike)}, considered);
}

double StaleSeconds(const JointCaches& caches, const WorkerState& worker, TimePoint now) {
  const auto next = caches.hears() ? caches.EvictsNext(worker.key) : worker.index.EvictsNext();
  return next ? Seconds(now - *next) : std::numeric_limits<double>::infinity();
}

// Of the workers that may take it the least filled. Accounts know who takes requests as of late;
// of the few that are left, the worker itself is asked.
std::vector<WorkerState*> PrefixChoice::Usable() const {
  const auto may = [this](const Account& a, uint64_t) {
    return a.member.takes_new && a.member.id != query_.not_worker;
  };
  std::vector<WorkerState*> usable;
  for (const auto& [fill, account] : accounts_.LeastFilled(params_.compare_max, 0, may)) {
    WorkerState* const w = FindWorker(workers_, account->member.id);
    if (w != nullptr && query_.MayTake(*w)) usable.push_back(w);
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
  if (everywhere_) return ConsiderAny(considered);
  if (homes_.size() == workers_.size()) return;
  if (!table_.CrowdsHomes(query_.prompt.k1())) return ConsiderSpare(considered);
  // Room or not: what a copy pushes out is asked for less than what it relieves.
  ConsiderEach(Usable(), considered);
}

// Where every worker is a home: all from a place of the conversation's own, so that ties spread,
// or some drawn by lot.
void PrefixChoice::ConsiderAny(std::vector<Candidate>& considered) const {
  const size_t n = workers_.size();
  const bool many = n > params_.compare_max;
  std::vector<WorkerState*> any;
  for (size_t i = 0; i < (many ? most_ : n); ++i) {
    any.push_back(workers_[many ? Lot(i, n) : (query_.prompt.k2() + i) % n]);
  }
  ConsiderEach(any, considered);
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
  for (const auto& [fill, account] : WithOthers({}, 0, Accounts::HasRoom)) {
    if (fill > params_.spare_mark) break;
    Consider(FindWorker(workers_, account->member.id), considered);
  }
}

}  // namespace hidane::routing
