#include "routing/placement.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hidane::routing {
namespace {

struct Option {
  const Account* account;
  double wait;
  double fill;
};

// Asking a thousand workers for their queues costs more than the rest of a decision; the least
// filled ones will do.
void KeepLeastFilled(std::vector<Option>& options) {
  constexpr size_t kMost = 64;
  if (options.size() <= kMost) return;
  const auto end = options.begin() + kMost;
  std::ranges::nth_element(options, end, {}, [](const Option& o) {
    return std::pair(o.fill, o.account->member.id);  // no ties: the same everywhere
  });
  options.erase(end, options.end());
}

}  // namespace

PlacementTable::PlacementTable(const Params& params, Accounts& accounts, DeltaLog& log)
    : params_(params),
      accounts_(accounts),
      log_(log),
      prefixes_(params.prefixes_max),
      load_(params.share_halflife_s, params.share_requests_min),
      prefill_tokens_per_s_(params.prefill_tokens_per_s) {}

void PlacementTable::PutWorker(const Member& member) {
  const Account* const known = accounts_.Find(member.id);
  if (known != nullptr && known->member.key != member.key) RemoveWorker(member.id);
  if (!accounts_.Put(member)) return;
  for (auto& [k1, prefix] : prefixes_) Sync(k1, prefix);  // others may have told of homes there
  TakeTopRanked(*accounts_.Find(member.id));
}

void PlacementTable::TakeTopRanked(const Account& joined) {
  const Member& member = joined.member;
  if (!member.takes_new) return;
  for (auto& [k1, prefix] : prefixes_) {
    if (prefix.homes.empty() || joined.assigned() + prefix.tokens > accounts_.Limit(joined)) {
      continue;
    }
    const double score = RendezvousScore(k1, member);
    const bool heads = std::ranges::all_of(accounts_, [&, key = k1](const Account& a) {
      return a.member.id == member.id || RendezvousScore(key, a.member) < score;
    });
    if (heads) Place(k1, prefix, member);
  }
}

void PlacementTable::RemoveWorker(WorkerId id) {
  if (accounts_.Find(id) == nullptr) return;
  accounts_.Remove(id);
  for (auto& [k1, prefix] : prefixes_) {
    if (std::ranges::find(prefix.homes, id) != prefix.homes.end()) Sync(k1, prefix);
  }
}

std::span<const WorkerId> PlacementTable::Homes(uint64_t k1) const {
  const Prefix* const prefix = prefixes_.Find(k1);
  return prefix == nullptr ? std::span<const WorkerId>() : prefix->homes;
}

uint32_t PlacementTable::Tokens(uint64_t k1) const {
  const Prefix* const prefix = prefixes_.Find(k1);
  return prefix == nullptr ? 0 : prefix->tokens;
}

const WorkerId* PlacementTable::ColdHome(uint64_t k1) const {
  const Prefix* const prefix = prefixes_.Find(k1);
  if (prefix == nullptr) return nullptr;
  for (const Claim& claim : prefix->others) {
    if (!claim.cold || !claim.lives) continue;
    if (const Account* a = accounts_.FindKey(claim.worker)) return &a->member.id;
  }
  return nullptr;
}

bool PlacementTable::WarmedElsewhere(uint64_t k1, const Member& member) const {
  const Prefix* const prefix = prefixes_.Find(k1);
  if (prefix == nullptr) return false;
  const Claim* claim = &prefix->first;
  if (claim->worker != member.key) claim = FindClaim(*prefix, member.key);
  return claim != nullptr && claim->lives && claim->stamp.replica != params_.replica;
}

WorkerId PlacementTable::Propose(uint64_t k1, uint32_t tokens, double prefill_s, const Wait& wait,
                                 TimePoint now) const {
  const auto score = [k1](const Option& o) { return RendezvousScore(k1, o.account->member); };
  std::vector<Option> options;
  options.reserve(accounts_.size());
  const auto collect = [&](bool must_fit, bool must_take) {
    for (const Account& a : accounts_) {
      const bool fits = a.assigned() - a.extra + tokens <= accounts_.Limit(a);
      if ((must_fit && !fits) || (must_take && !a.member.takes_new)) continue;
      const uint64_t firsts = a.assigned() - a.extra;
      const auto capacity = static_cast<double>(std::max<uint64_t>(a.member.capacity_tokens, 1));
      options.push_back({&a, 0, static_cast<double>(firsts) / capacity});
    }
    return !options.empty();
  };
  const bool fits = collect(true, true);
  if (!fits && !collect(false, true)) collect(false, false);

  const uint32_t choices = params_.silent_peers ? 1 : std::max(1u, params_.first_sight_choices);
  if (options.size() > choices) {
    const auto end = options.begin() + choices;
    std::ranges::partial_sort(options, end, std::greater{}, score);
    options.erase(end, options.end());
  }
  KeepLeastFilled(options);
  for (Option& o : options) {
    const Member& member = o.account->member;
    o.wait = wait(member.id) + o.account->told_s(now);
  }
  const double earliest = std::ranges::min(options, {}, &Option::wait).wait;
  const double near = std::max(prefill_s, params_.near_tie_s);
  const Option* best = nullptr;
  for (const Option& o : options) {
    if (fits && o.wait > earliest + near) continue;
    const bool better =
        best == nullptr || o.fill < best->fill || (o.fill == best->fill && score(o) > score(*best));
    if (better) best = &o;
  }
  return best->account->member.id;
}

const WorkerId* PlacementTable::Refuge(uint64_t k1, uint32_t tokens,
                                       const std::function<bool(WorkerId)>& usable) const {
  const Account* best = nullptr;
  bool best_fits = false;
  for (const Account& a : accounts_) {
    if (!usable(a.member.id)) continue;
    const bool fits = a.assigned() + tokens <= Accounts::Assignable(a);
    const bool better =
        best == nullptr || (fits && !best_fits) ||
        (fits == best_fits && RendezvousScore(k1, a.member) > RendezvousScore(k1, best->member));
    if (!better) continue;
    best = &a;
    best_fits = fits;
  }
  return best == nullptr ? nullptr : &best->member.id;
}

void PlacementTable::See(uint64_t k1, uint32_t tokens, TimePoint now) {
  Prefix& prefix = Touch(k1);
  prefix.seen = now;
  prefix.seen_here = true;
  load_.Add(prefix.load, now);
  if (prefix.tokens != tokens) Resize(prefix, tokens);
  if (now < next_rebalance_) return;
  Rebalance(now);
  next_rebalance_ = now + FromSeconds(params_.rebalance_every_s);
}

void PlacementTable::Use(uint64_t k1, TimePoint now) {
  if (Knows(k1)) Touch(k1).seen = now;
}

void PlacementTable::Serve(uint64_t k1, uint32_t tokens, WorkerId worker, TimePoint now) {
  See(k1, tokens, now);
  Prefix& prefix = *prefixes_.Find(k1);
  Account& account = *accounts_.Find(worker);
  if (std::ranges::find(prefix.homes, worker) != prefix.homes.end()) {
    Warm(k1, prefix, account.member);
    return;
  }
  if (prefix.homes.empty()) {
    Place(k1, prefix, account.member);
    last_change_ = now;
  } else {
    AddHome(k1, prefix, account.member);
    Warm(k1, prefix, account.member);
  }
  Shrink(account);
}

}  // namespace hidane::routing
