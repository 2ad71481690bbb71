// The slow side of the placement table: once a second homes follow load and memory.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "routing/placement.h"

namespace hidane::routing {
namespace {

constexpr size_t kGiftsMax = 8;        // spare homes given in one pass
constexpr double kOthersPatience = 3;  // of gateways that did not place the prefix, to the placer's
constexpr double kMostOfWorker = 0.5;  // of an average one's load, from one prefix
constexpr double kSettleSeconds = 5;   // without a change of first homes, before load moves one

}  // namespace

void PlacementTable::Rebalance(TimePoint now) {
  ForgetIdle(now);
  ForRecent([this](Entry& entry) { DropEmptied(entry); });
  ShrinkAll();
  SumLoads();
  ForRecent([this, now](Entry& entry) { GrowByLoad(entry, now); });
  GiveSpare();
  MoveByLoad(now);
}

// A prefix that nobody has used for long makes way where another one like it would not fit.
void PlacementTable::ForgetIdle(TimePoint now) {
  size_t visited = 0;
  for (auto at = prefixes_.end(); at != prefixes_.begin() && ++visited <= kRebalancePrefixes;) {
    const auto here = --at;
    const Prefix& prefix = here->second;
    if (Seconds(now - prefix.seen) < params_.idle_release_s) return;
    const bool in_the_way = std::ranges::any_of(prefix.homes, [&](WorkerId home) {
      const Account& account = *accounts_.Find(home);
      return account.assigned() + prefix.tokens > account.limit;
    });
    if (!in_the_way) continue;
    ++at;
    Forget(*here);
  }
}

// What one more home is worth: the drop in the largest load per home, per token of memory.
double PlacementTable::GainPerToken(const Prefix& prefix) const {
  const auto homes = static_cast<double>(std::max<size_t>(prefix.homes.size(), 1));
  return load_.Value(prefix.load) / (homes * (homes + 1) * std::max(1u, prefix.tokens));
}

// Of the workers that are no home yet and hold at most `limit(account)` with it the one with the
// least load, then the first in rendezvous order.
template <class LimitOf>
Account* PlacementTable::NextHome(const Entry& entry, LimitOf&& limit) {
  const auto& [k1, prefix] = entry;
  Account* best = nullptr;
  for (Account& a : accounts_) {
    if (!a.member.takes_new || a.assigned() + prefix.tokens > limit(a)) continue;
    if (IsHome(prefix, a.member)) continue;
    const bool better = best == nullptr || a.load < best->load ||
                        (a.load == best->load && RanksBefore(k1, a.member, best->member));
    if (better) best = &a;
  }
  return best;
}

// A home that came back empty promises memory for nothing, which is missed where a warm home's
// worker is over its limit: there the prefix is at home alone from now on.
void PlacementTable::DropEmptied(Entry& entry) {
  Prefix& prefix = entry.second;
  const auto is_empty = [](const Claim& claim) { return claim.cache == Cache::kEmptied; };
  if (prefix.homes.size() < 2) return;
  if (!is_empty(prefix.first) && std::ranges::none_of(prefix.others, is_empty)) return;  // mostly
  const auto emptied = [&](const Account& a) {
    return is_empty(*LivingClaim(prefix, a.member.key));
  };
  const bool short_of_memory = std::ranges::any_of(prefix.homes, [&](WorkerId home) {
    const Account& a = *accounts_.Find(home);
    return !emptied(a) && a.member.takes_new && a.assigned() > a.limit;
  });
  if (!short_of_memory) return;
  for (const WorkerId home : std::vector(prefix.homes)) {
    const Account& a = *accounts_.Find(home);
    if (emptied(a)) DropHome(entry.first, prefix, a.member);
  }
}

// None of its other homes may be sent requests.
bool PlacementTable::OnlyUsable(const Prefix& prefix, const Member& member) const {
  return std::ranges::none_of(prefix.homes, [&](WorkerId home) {
    return home != member.id && accounts_.Find(home)->member.takes_new;
  });
}

// Its extra home may leave: no conversation lives there, and the others take requests and would
// not be crowded. While all fits, whether load asks for it is for the gateway to say that gave it;
// where it does not fit, a home that no request was sent to yet relieves nobody.
bool PlacementTable::MayDrop(const Entry& entry, const Account& account) const {
  const auto& [k1, prefix] = entry;
  const Member& member = account.member;
  if (prefix.homes.front() == member.id || (in_use_ && in_use_(k1, member))) return false;
  if (OnlyUsable(prefix, member)) return false;
  const Claim& claim = *FindClaim(prefix, member.key);
  const bool fits = account.assigned() <= Accounts::Assignable(account);
  if (!fits && claim.cache == Cache::kCold) return true;
  if (PartOfWorker(prefix, prefix.homes.size() - 1) > kMostOfWorker) return false;
  const bool wanted = !Mine(claim) || prefix.homes.size() <= Deserved(prefix, params_.headroom);
  return !(fits && wanted);
}

// Over the limit, extra homes leave at once, the least valuable first.
void PlacementTable::Shrink(Account& account) {
  const Member member = account.member;
  while (account.assigned() > account.limit && account.extra > 0) {
    Entry* least = nullptr;
    for (Entry& entry : prefixes_) {
      const Prefix& prefix = entry.second;
      if (prefix.homes.size() < 2 || !IsHome(prefix, member)) continue;
      if (!MayDrop(entry, account)) continue;
      if (least != nullptr && GainPerToken(prefix) >= GainPerToken(least->second)) continue;
      least = &entry;
    }
    if (least == nullptr) return;
    DropHome(least->first, least->second, member);
  }
}

// One pass over the table says which accounts have a home to drop; dropping one leaves no other
// account with more, so the rest need not be looked at.
void PlacementTable::ShrinkAll() {
  std::vector<WorkerId> shrinking;
  for (const Entry& entry : prefixes_) {
    const std::vector<WorkerId>& homes = entry.second.homes;
    for (size_t i = 1; i < homes.size(); ++i) {
      const Account& account = *accounts_.Find(homes[i]);
      if (account.assigned() <= account.limit || !MayDrop(entry, account)) continue;
      shrinking.push_back(account.member.id);
    }
  }
  std::ranges::sort(shrinking);
  shrinking.erase(std::unique(shrinking.begin(), shrinking.end()), shrinking.end());
  for (const WorkerId id : shrinking) Shrink(*accounts_.Find(id));
}

void PlacementTable::SumLoads() {
  for (Account& account : accounts_) account.load = 0;
  if (params_.silent_peers) return;  // each would act on a load of its own
  ForRecent([this](const Entry& entry) {
    const Prefix& prefix = entry.second;
    const double load = load_.Value(prefix.load) / static_cast<double>(prefix.homes.size());
    for (const WorkerId home : prefix.homes) accounts_.Find(home)->load += load;
  });
}

// One more home, which takes its part of the load from the others.
void PlacementTable::Grow(Entry& entry, Account& to) {
  auto& [k1, prefix] = entry;
  const double load = load_.Value(prefix.load);
  const auto homes = static_cast<double>(prefix.homes.size());
  for (const WorkerId home : prefix.homes) {
    accounts_.Find(home)->load -= load / (homes * (homes + 1));
  }
  to.load += load / (homes + 1);
  AddHome(k1, prefix, to.member);
}

// Memory alone may give one worker the busy prefixes: then one of them moves from the busiest
// worker to the least busy one, by the hand of the gateway that placed it. Loads are noisy: the
// busiest one's is read two standard errors low, and nothing moves when something just has.
void PlacementTable::MoveByLoad(TimePoint now) {
  constexpr double kBusy = 1.3;                 // times the mean
  constexpr double kRequestsPerWorkerMin = 32;  // below that loads are noise
  if (accounts_.empty() || Seconds(now - last_change_) < kSettleSeconds) return;
  double sum = 0;
  for (const Account& a : accounts_) sum += a.load;
  const Account& busiest = *std::ranges::max_element(accounts_, {}, &Account::load);
  const auto n = static_cast<double>(accounts_.size());
  const double surely = busiest.load - 2 * std::sqrt(busiest.load);
  if (sum < kRequestsPerWorkerMin * n || surely < kBusy * sum / n) return;
  Entry* best = nullptr;
  Account* to = nullptr;
  for (Entry& entry : prefixes_) {
    const auto& [k1, prefix] = entry;
    if (prefix.homes.size() != 1 || prefix.homes.front() != busiest.member.id) continue;
    if (in_use_ && in_use_(k1, busiest.member)) continue;
    const double load = load_.Value(prefix.load);
    if (best != nullptr && load <= load_.Value(best->second.load)) continue;
    Account* const next = NextHome(entry, [](const Account& a) { return a.limit; });
    if (next == nullptr || next->load + load > busiest.load - load) continue;
    best = &entry;
    to = next;
  }
  if (best == nullptr || !Mine(best->second.first)) return;
  Place(best->first, best->second, to->member);
  last_change_ = now;
}

// Homes that the prefix's share of the load deserves, read cautiously: noise moves nothing.
size_t PlacementTable::Deserved(const Prefix& prefix, double headroom) const {
  const double homes =
      std::ceil(load_.LowerShare(prefix.load) * static_cast<double>(accounts_.size()) * headroom);
  return std::min(static_cast<size_t>(homes), accounts_.size());
}

// A wish must last, too; that of a gateway that did not place the prefix longer, so that one gives
// the home and not all.
void PlacementTable::GrowByLoad(Entry& entry, TimePoint now) {
  Prefix& prefix = entry.second;
  if (prefix.homes.empty() || Deserved(prefix, params_.headroom) <= prefix.homes.size()) {
    prefix.wish_since.reset();
    return;
  }
  if (!prefix.wish_since) prefix.wish_since = now;
  const double patience = Mine(prefix.first) ? 1 : kOthersPatience;
  if (Seconds(now - *prefix.wish_since) < patience * params_.grow_after_s) return;
  if (Account* const next = NextHome(entry, Accounts::Assignable)) Grow(entry, *next);
}

// Spare memory buys more homes for the same load, the best gain per token first. Only the gateway
// that placed a prefix gives them, or each would give one.
void PlacementTable::GiveSpare() {
  std::vector<Entry*> by_gain;
  ForRecent([&](Entry& entry) {
    const Prefix& prefix = entry.second;
    const bool grows = Mine(prefix.first) && !prefix.homes.empty() &&
                       prefix.homes.size() < Deserved(prefix, params_.spare_headroom);
    if (grows) by_gain.push_back(&entry);
  });
  const size_t gifts = std::min<size_t>(1 + accounts_.size() / 4, kGiftsMax);
  const auto best = by_gain.begin() + static_cast<ptrdiff_t>(std::min(gifts, by_gain.size()));
  std::ranges::partial_sort(by_gain, best, std::greater{},
                            [this](const Entry* e) { return GainPerToken(e->second); });
  for (auto at = by_gain.begin(); at != best; ++at) {
    const auto limit = [this](const Account& a) { return SpareLimit(a); };
    if (Account* const next = NextHome(**at, limit)) Grow(**at, *next);
  }
  spare_tokens_ = 0;
  for (const Account& a : accounts_) {
    const uint64_t limit = SpareLimit(a);
    spare_tokens_ = std::max(spare_tokens_, limit - std::min(limit, a.assigned()));
  }
}

uint64_t PlacementTable::SpareLimit(const Account& account) const {
  const double spare = params_.spare_mark * static_cast<double>(account.member.capacity_tokens);
  return std::min(static_cast<uint64_t>(spare), account.limit);
}

// Of two homes the one with the shorter queue: that is most of what choice can give, where the
// prefix is a part of its worker's load that one feels.
bool PlacementTable::WantsChoice(uint64_t k1) const {
  constexpr double kPart = 0.1;
  constexpr double kRequestsMin = 0.5;  // one, faded
  const Prefix* const prefix = prefixes_.Find(k1);
  if (prefix == nullptr || prefix->homes.size() != 1) return false;
  return prefix->tokens <= spare_tokens_ && PartOfWorker(*prefix, 1) >= kPart &&
         load_.Value(prefix->load) >= kRequestsMin;
}

bool PlacementTable::CrowdsHomes(uint64_t k1) const {
  const Prefix* const prefix = prefixes_.Find(k1);
  return prefix != nullptr && PartOfWorker(*prefix, prefix->homes.size()) > kMostOfWorker;
}

// What each of so many homes would do for it, as a part of an average worker's load. 0 while too
// little was seen to tell, and for gateways that are silent.
double PlacementTable::PartOfWorker(const Prefix& prefix, size_t homes) const {
  const auto workers = static_cast<double>(accounts_.size());
  if (params_.silent_peers || homes == 0 || load_.Total() <= workers) return 0;
  return load_.Share(prefix.load) * workers / static_cast<double>(homes);
}

}  // namespace hidane::routing
