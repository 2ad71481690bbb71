#include "routing/prefix_choice.h"

#include <algorithm>

namespace hidane::routing {
namespace {

// What the choice costs this request and the ones behind it. The prefill counts again, more where
// much was computed of late than `usual_s`, the mean of those compared. Among homes, a worker that
// is none of them must not look cheap for being idle.
double CostOf(const Candidate& c, double usual_s, bool homes) {
  const double busy = usual_s > 0 ? c.recent_prefill_s / usual_s : 1;
  const double again = homes ? std::max(1.0, busy) : busy * busy;
  return c.ttft.total() + again * c.ttft.prefill + c.decode_s;
}

double UsualPrefill(const std::vector<Candidate>& considered) {
  double sum = 0;
  for (const Candidate& c : considered) sum += c.recent_prefill_s;
  return sum / static_cast<double>(considered.size());
}

}  // namespace

bool LivesEverywhere(const Query& query, const WorkerState& any, const PlacementTable& table,
                     const Params& params) {
  const double recompute_s = any.speed.PrefillSeconds(query.k1_tokens, 0);
  return recompute_s < params.short_k1_s && !table.Knows(query.prompt.k1());
}

PrefixChoice::PrefixChoice(const Params& params, const Accounts& accounts,
                           const PlacementTable& table, const Conversations& talks,
                           const JointCaches& caches, const Query& query, WorkerSpan workers,
                           uint64_t draw)
    : params_(params),
      accounts_(accounts),
      table_(table),
      talks_(talks),
      caches_(caches),
      query_(query),
      workers_(workers),
      draw_(draw),
      most_(workers.size() <= params.compare_max ? params.compare_max
                                                 : std::max(1u, params.compare_max / 2)),
      talk_(talks.Find(query.prompt.k2())),
      everywhere_(LivesEverywhere(query, *workers.front(), table, params)) {
  if (everywhere_) return;
  homes_ = table.Homes(query.prompt.k1());
  if (homes_.size() <= params.compare_max) return;
  for (size_t i = 0; i < most_; ++i) lots_.push_back(homes_[Lot(i, homes_.size())]);
}

Choice PrefixChoice::Make(std::vector<Candidate>& considered) {
  if (!everywhere_ && homes_.empty()) return Place(considered);
  const Account* const at = talk_ != nullptr ? accounts_.FindKey(talk_->worker) : nullptr;
  WorkerState* const last = at != nullptr ? FindWorker(workers_, at->member.id) : nullptr;
  if (last != nullptr && query_.MayTake(*last)) return Continue(last, considered);
  if (query_.has_history() || talks_.GoOn(query_.prompt.k1())) return Settle(considered);
  return Balance(considered);
}

// First sight of the prefix. Where it fits nowhere promises say no more, so the caches are asked.
Choice PrefixChoice::Place(std::vector<Candidate>& considered) const {
  if (!params_.silent_peers && !table_.Fits(query_.k1_tokens)) {
    WorkerState* const stalest = Stalest(nullptr);
    if (Consider(stalest, considered)) return {stalest, Rule::kPlaced};
  }
  const double prefill_s = workers_.front()->speed.PrefillSeconds(query_.k1_tokens, 0);
  const auto wait = [&](WorkerId id) {
    return FindWorker(workers_, id)->ledger.wait_s(query_.now);
  };
  const WorkerId home =
      table_.Propose(query_.prompt.k1(), query_.k1_tokens, prefill_s, wait, query_.now);
  if (!Consider(FindWorker(workers_, home), considered)) return Flee(considered);
  return {FindWorker(workers_, home), Rule::kPlaced};
}

// A conversation without a home, which will hold memory: where there is room for what it usually
// becomes. Near-equal fills leave the choice to the predicted time, as where the prefix is at home.
Choice PrefixChoice::Settle(std::vector<Candidate>& considered) const {
  const uint64_t own = query_.prompt_tokens - query_.k1_tokens;
  const uint64_t usual = talks_.UsualTokens(query_.prompt.k1());
  ConsiderRoomiest(std::max(own, usual), 0.5, considered);
  if (considered.empty()) return Balance(considered);
  return Cheapest(Among::kRoom, considered);
}

// It stays unless another worker with room for its history is cheaper though it computes it anew.
Choice PrefixChoice::Continue(WorkerState* last, std::vector<Candidate>& considered) const {
  Consider(last, considered);
  const Candidate here = considered.front();
  if (query_.has_history() && here.cached_tokens < query_.prompt_tokens / 2) {
    if (const Choice emptier = Emptier(*last, considered); emptier.worker != nullptr) {
      return emptier;
    }
  }
  if (here.ttft.wait + here.ttft.kv_wait <= params_.near_tie_s) return {last, Rule::kSticky};
  const uint64_t own = query_.prompt_tokens - query_.k1_tokens;
  if (query_.has_history()) {
    ConsiderRoomiest(own, 1, considered);
  } else if (everywhere_) {
    ConsiderAny(considered);
  } else {
    ConsiderHomes(considered);
  }
  const Choice best =
      Cheapest(query_.has_history() ? Among::kRoom : Among::kHomes, considered, last);
  return {best.worker, best.worker == last ? Rule::kSticky : Rule::kBalance};
}

// Most of its history has to be computed anew wherever it goes, so where there is no room for it
// here it goes where it evicts least.
Choice PrefixChoice::Emptier(const WorkerState& last, std::vector<Candidate>& considered) const {
  constexpr double kAlike = 0.25;
  const uint64_t own = query_.prompt_tokens - query_.k1_tokens;
  const uint64_t held = talk_->counted ? std::min<uint64_t>(own, talk_->tokens) : 0;
  const Account& here = *accounts_.Find(last.spec.id);
  if (here.assigned() + own - held <= Accounts::Assignable(here)) return {};
  const double stays = Accounts::Fill(here, own - held);
  const auto may = [&](const Account& a, uint64_t tokens) {
    return a.member.takes_new && a.assigned() + tokens <= Accounts::Assignable(a) &&
           Accounts::Fill(a, tokens) < stays;
  };
  std::vector<Candidate> others;
  ConsiderAlike(WithOthers(LeastFilledHomes(own, may), own, may), kAlike, own, others);
  considered.insert(considered.end(), others.begin(), others.end());
  return others.empty() ? Choice{} : Choice{Cheapest(Among::kRoom, others).worker, Rule::kBalance};
}

Choice PrefixChoice::Balance(std::vector<Candidate>& considered) const {
  if (!everywhere_) {
    const Choice placed = NewHome();
    if (Consider(placed.worker, considered)) return placed;
  }
  ConsiderHomes(considered);
  if (!everywhere_ && considered.empty()) return Flee(considered);
  ConsiderOthers(considered);
  if (considered.empty()) return Flee(considered);
  Choice best = Cheapest(Among::kHomes, considered);
  if (homes_.size() == 1 && best.worker->spec.id == homes_.front()) best.rule = Rule::kHome;
  return best;
}

// Where the prefix had better be computed now, though a home may look cheaper.
Choice PrefixChoice::NewHome() const {
  if (const WorkerId* const cold = table_.ColdHome(query_.prompt.k1())) {
    WorkerState* const given = FindWorker(workers_, *cold);
    if (given != nullptr && query_.MayTake(*given)) return {given, Rule::kPlaced};
  }
  if (WorkerState* const second = SecondHome()) return {second, Rule::kPlaced};
  if (WorkerState* const emptied = EmptiedHome()) return {emptied, Rule::kPlaced};
  return {BetterHome(), Rule::kPlaced, true};
}

// A cold prefill, so in a quiet moment: the home holds the prefix, and the new one, the least
// filled of those that may be, has nothing to compute.
WorkerState* PrefixChoice::SecondHome() const {
  if (!table_.WantsChoice(query_.prompt.k1())) return nullptr;
  const WorkerState* const home = FindWorker(workers_, homes_.front());
  if (home == nullptr || !query_.MayTake(*home)) return nullptr;
  const double recompute_s = home->speed.PrefillSeconds(query_.k1_tokens, 0);
  if (!Holds(*home) || home->ledger.wait_s(query_.now) > recompute_s / 2) return nullptr;
  const auto may = [&](const Account& a, uint64_t tokens) {
    if (IsHome(a.member) || !a.member.takes_new || a.told_s(query_.now) > 0) return false;
    const WorkerState* const w = FindWorker(workers_, a.member.id);
    return a.assigned() + tokens <= table_.SpareLimit(a) && query_.MayTake(*w) &&
           w->ledger.unanswered() == 0;
  };
  const Accounts::Filled best = accounts_.LeastFilled(1, query_.k1_tokens, may);
  return best.empty() ? nullptr : FindWorker(workers_, best.front().second->member.id);
}

// A home that came back empty: with a warm one beside it, its cold prefill would never look cheap,
// and it would stay idle. Warmed in a quiet moment, where that evicts nothing; caches are mostly
// full, so that is asked first.
WorkerState* PrefixChoice::EmptiedHome() const {
  if (homes_.size() < 2) return nullptr;
  const std::vector<WorkerState*> homes = SomeHomes();
  WorkerState* emptied = nullptr;
  for (WorkerState* const w : homes) {
    if (!query_.MayTake(*w) || w->ledger.unanswered() > 0) continue;
    if (w->index.HasRoom(query_.k1_tokens) && !Holds(*w)) emptied = w;
  }
  const auto warm = [this](const WorkerState* w) { return query_.MayTake(*w) && Holds(*w); };
  return emptied != nullptr && std::ranges::any_of(homes, warm) ? emptied : nullptr;
}

// More is promised to its home than fits, and it is gone there: it must be computed wherever it
// goes, so it moves where that pushes out what is missed least.
WorkerState* PrefixChoice::BetterHome() const {
  if (params_.silent_peers || homes_.size() != 1) return nullptr;
  const WorkerState* const home = FindWorker(workers_, homes_.front());
  if (home == nullptr || !query_.MayTake(*home)) return nullptr;
  const Account& here = *accounts_.Find(home->spec.id);
  if (here.assigned() <= here.limit || StillHolds(*home)) return nullptr;
  return talks_.LiveAt(query_.prompt.k1(), home->key) ? nullptr : Stalest(home);
}

// Every home is out. The refuge becomes one too, so that all requests of the prefix go there; where
// gateways don't tell each other it must follow from the prefix alone.
Choice PrefixChoice::Flee(std::vector<Candidate>& considered) const {
  if (!params_.silent_peers) {
    WorkerState* const stalest = Stalest(nullptr);
    return Consider(stalest, considered) ? Choice{stalest, Rule::kFailover} : Choice{};
  }
  const WorkerId* refuge = table_.Refuge(query_.prompt.k1(), query_.k1_tokens, [&](WorkerId id) {
    const WorkerState* w = FindWorker(workers_, id);
    return w != nullptr && query_.MayTake(*w);
  });
  if (refuge == nullptr) return {};
  WorkerState* const worker = FindWorker(workers_, *refuge);
  Consider(worker, considered);
  return {worker, Rule::kFailover};
}

// Among near ties (rates are noisy) the one that holds most of the prompt, then the one that
// computed least of late: what is computed also evicts. Leaving `stays` has a price beside the
// prefill: the history stands in two memories until the older copy is evicted, and evicts others'.
Choice PrefixChoice::Cheapest(Among among, const std::vector<Candidate>& considered,
                              const WorkerState* stays) const {
  constexpr double kMovePrefills = 3;
  const bool homes = among == Among::kHomes && !everywhere_;
  const auto cost = [stays, homes, usual_s = UsualPrefill(considered)](const Candidate& c) {
    const bool moves = stays != nullptr && c.worker != stays->spec.id;
    return CostOf(c, usual_s, homes) + (moves ? kMovePrefills * c.ttft.prefill : 0);
  };
  const Candidate least = std::ranges::min(considered, {}, cost);
  const double most = cost(least) + NearTie(least.ttft.prefill, params_);
  const Candidate* best = nullptr;
  for (const Candidate& c : considered) {
    if (cost(c) > most) continue;
    const bool better =
        best == nullptr || c.cached_tokens > best->cached_tokens ||
        (c.cached_tokens == best->cached_tokens && c.recent_prefill_s < best->recent_prefill_s);
    if (better) best = &c;
  }
  const bool holds_more = best->cached_tokens > query_.k1_tokens;
  return {FindWorker(workers_, best->worker), holds_more ? Rule::kSticky : Rule::kBalance};
}

}  // namespace hidane::routing
