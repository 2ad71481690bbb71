#include "routing/placement.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hidane::routing {
namespace {

// Asking a thousand workers for their queues costs more than the rest of a decision; the least
// filled ones will do.
constexpr size_t kAsked = 16;

using Options = std::vector<const Account*>;

// Keeps the `most` least by `key`, which no two share: the same everywhere.
template <class Key>
void KeepLeast(Options& options, size_t most, Key&& key) {
  if (options.size() <= most) return;
  const auto end = options.begin() + static_cast<std::ptrdiff_t>(most);
  std::ranges::nth_element(options, end, {}, key);
  options.erase(end, options.end());
}

// The accounts that `may` take prefix `k1`: of the `choices` first in its rendezvous order the
// least filled ones.
template <class May>
Options Collect(const Accounts& accounts, uint64_t k1, size_t choices, May&& may) {
  Options options;
  for (const Account& a : accounts) {
    if (may(a)) options.push_back(&a);
  }
  KeepLeast(options, choices, [k1](const Account* a) { return -RendezvousScore(k1, a->member); });
  KeepLeast(options, kAsked,
            [&](const Account* a) { return std::pair(accounts.FirstsFill(*a), a); });
  return options;
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
    if (prefix.homes.empty() || joined.assigned() + prefix.tokens > joined.limit) {
      continue;
    }
    const bool heads = std::ranges::all_of(accounts_, [&, key = k1](const Account& a) {
      return a.member.id == member.id || RanksBefore(key, member, a.member);
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

bool PlacementTable::IsHome(uint64_t k1, const Member& member) const {
  const Prefix* const prefix = prefixes_.Find(k1);
  return prefix != nullptr && IsHome(*prefix, member);
}

uint32_t PlacementTable::Tokens(uint64_t k1) const {
  const Prefix* const prefix = prefixes_.Find(k1);
  return prefix == nullptr ? 0 : prefix->tokens;
}

const WorkerId* PlacementTable::ColdHome(uint64_t k1) const {
  const Prefix* const prefix = prefixes_.Find(k1);
  if (prefix == nullptr || prefix->cold == 0) return nullptr;
  for (const Claim& claim : prefix->others) {
    if (claim.cache != Cache::kCold || LivingClaim(*prefix, claim.worker) != &claim) continue;
    if (const Account* a = accounts_.FindKey(claim.worker)) return &a->member.id;
  }
  return nullptr;
}

bool PlacementTable::WarmedElsewhere(uint64_t k1, const Member& member) const {
  const Prefix* const prefix = prefixes_.Find(k1);
  if (prefix == nullptr) return false;
  const Claim* const claim = LivingClaim(*prefix, member.key);
  return claim != nullptr && claim->cache == Cache::kTold;
}

bool PlacementTable::Fits(uint32_t tokens) const {
  return std::ranges::any_of(accounts_, [tokens](const Account& a) {
    return a.member.takes_new && a.firsts() + tokens <= a.limit;
  });
}

// Waits are never negative, so where the least filled ones could all begin soon after now, the
// others need not be asked when the earliest could.
WorkerId PlacementTable::Propose(uint64_t k1, uint32_t tokens, double prefill_s, const Wait& wait,
                                 TimePoint now) const {
  const size_t choices = params_.silent_peers ? 1 : std::max(1u, params_.first_sight_choices);
  const double near = NearTie(prefill_s, params_);
  // Where it fits; else where it would if extra homes made way, which those that load asks for
  // don't; else where new ones may go; else anywhere.
  for (int mercy = 0;; ++mercy) {
    const auto may = [&](const Account& a) {
      return (mercy > 0 || a.assigned() + tokens <= Accounts::Assignable(a)) &&
             (mercy > 1 || a.firsts() + tokens <= a.limit) && (mercy > 2 || a.member.takes_new);
    };
    const auto ask = [&](const Options& options) {
      std::vector<double> waits;
      waits.reserve(options.size());
      for (const Account* const a : options) {
        waits.push_back(mercy > 1 ? 0 : wait(a->member.id) + a->told_s(now));
      }
      return waits;
    };
    Options options;
    if (choices >= accounts_.size()) options = accounts_.LeastFirsts(kAsked, may);
    std::vector<double> waits = ask(options);
    if (options.size() < kAsked && (options.empty() || std::ranges::max(waits) > near)) {
      options = Collect(accounts_, k1, choices, may);
      waits = ask(options);
    }
    if (!options.empty()) return LeastFilledSoon(k1, options, waits, near);
  }
}

// Of those that could begin within `near` of the earliest; then the first in rendezvous order.
WorkerId PlacementTable::LeastFilledSoon(uint64_t k1, std::span<const Account* const> options,
                                         std::span<const double> waits, double near) const {
  const double latest = std::ranges::min(waits) + near;
  const Account* best = nullptr;
  for (size_t i = 0; i < options.size(); ++i) {
    const Account* const a = options[i];
    if (waits[i] > latest) continue;
    const double fill = accounts_.FirstsFill(*a);
    const double least = best == nullptr ? fill : accounts_.FirstsFill(*best);
    const bool better = best == nullptr || fill < least ||
                        (fill == least && RanksBefore(k1, a->member, best->member));
    if (better) best = a;
  }
  return best->member.id;
}

const WorkerId* PlacementTable::Refuge(uint64_t k1, uint32_t tokens,
                                       const std::function<bool(WorkerId)>& usable) const {
  const Account* best = nullptr;
  bool best_fits = false;
  for (const Account& a : accounts_) {
    if (!usable(a.member.id)) continue;
    const bool fits = a.assigned() + tokens <= Accounts::Assignable(a);
    const bool better = best == nullptr || (fits && !best_fits) ||
                        (fits == best_fits && RanksBefore(k1, a.member, best->member));
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

void PlacementTable::Use(uint64_t k1, uint64_t worker_key, TimePoint now) {
  if (!Knows(k1)) return;
  Prefix& prefix = Touch(k1);
  prefix.seen = now;
  Claim* const claim = LivingClaim(prefix, worker_key);
  if (claim == nullptr || claim->cache == Cache::kCold) return;
  claim->used = now;
  claim->refreshes = 0;
  if (!Mine(*claim)) claim->cache = Cache::kTold;
  if (claim->cache == Cache::kEmptied) claim->cache = Cache::kWarm;
}

void PlacementTable::Emptied(uint64_t worker_key) {
  for (auto& [k1, prefix] : prefixes_) {
    Claim* const claim = LivingClaim(prefix, worker_key);
    if (claim != nullptr && claim->cache != Cache::kCold) claim->cache = Cache::kEmptied;
  }
}

std::vector<Refresh> PlacementTable::TakeRefreshes(const Due& due, TimePoint now) {
  std::vector<Refresh> taken;
  ForRecent([&](Entry& entry) {
    auto& [k1, prefix] = entry;
    for (const WorkerId home : prefix.homes) {
      const Account& account = *accounts_.Find(home);
      Claim& claim = *LivingClaim(prefix, account.member.key);
      const bool warm = claim.cache == Cache::kWarm || claim.cache == Cache::kTold;
      if (!warm || !Mine(claim) || account.assigned() > Accounts::Assignable(account)) continue;
      const Kept kept{.tokens = prefix.tokens,
                      .idle_s = Seconds(now - claim.used),
                      .refreshes = claim.refreshes};
      if (!account.member.takes_new || !due(k1, kept, home)) continue;
      claim.used = now;
      ++claim.refreshes;
      taken.push_back({k1, home});
    }
  });
  return taken;
}

void PlacementTable::Move(uint64_t k1, WorkerId worker) {
  Place(k1, *prefixes_.Find(k1), accounts_.Find(worker)->member);
}

void PlacementTable::Serve(uint64_t k1, uint32_t tokens, WorkerId worker, TimePoint now) {
  See(k1, tokens, now);
  Prefix& prefix = *prefixes_.Find(k1);
  Account& account = *accounts_.Find(worker);
  const bool known = IsHome(prefix, account.member);
  if (!known && prefix.homes.empty()) {
    Place(k1, prefix, account.member);
    last_change_ = now;
  } else if (!known) {
    AddHome(k1, prefix, account.member);
  }
  Warm(k1, prefix, account.member, now);
  if (!known) Shrink(account);
}

}  // namespace hidane::routing
