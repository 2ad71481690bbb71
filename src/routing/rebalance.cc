// The slow side of the placement table: once a second homes follow load and memory.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "routing/placement.h"

namespace hidane::routing {
namespace {

constexpr size_t kRebalancePrefixes = 4'096;
constexpr size_t kGiftsMax = 8;          // spare homes given in one pass
constexpr double kSpareRequestsMin = 8;  // a prefix seen less often gets no spare home

}  // namespace

void PlacementTable::Rebalance(TimePoint now) {
  ForgetIdle(now);
  for (Account& account : accounts_) {
    Shrink(account);
    MoveOut(account);
  }
  size_t visited = 0;
  for (Entry& entry : prefixes_) {
    if (++visited > kRebalancePrefixes) break;
    GrowByLoad(entry, now);
  }
  GiveSpare(now);
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
      return account.assigned() + prefix.tokens > accounts_.Limit(account);
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

// Over the limit, extra homes leave at once, the least valuable first.
void PlacementTable::Shrink(Account& account) {
  const Member member = account.member;
  while (account.assigned() > accounts_.Limit(account) && account.extra > 0) {
    Entry* least = nullptr;
    for (Entry& entry : prefixes_) {
      const auto& [k1, prefix] = entry;
      const auto at = std::ranges::find(prefix.homes, member.id);
      if (at == prefix.homes.end() || at == prefix.homes.begin()) continue;
      if (in_use_ && in_use_(k1, member)) continue;
      if (least != nullptr && GainPerToken(prefix) >= GainPerToken(least->second)) continue;
      least = &entry;
    }
    if (least == nullptr) return;
    DropHome(least->first, least->second, member);
  }
}

// A worker assigned more than it can hold thrashes for good; one cold prefill elsewhere is
// cheaper, the least recently used prefix first. From the limit to the whole memory it stays:
// that gap is the hysteresis.
void PlacementTable::MoveOut(Account& account) {
  const Member member = account.member;
  if (account.assigned() <= Accounts::Assignable(account)) return;
  for (auto at = prefixes_.end(); at != prefixes_.begin();) {
    auto& [k1, prefix] = *--at;
    if (account.assigned() <= accounts_.Limit(account)) return;
    if (prefix.homes.empty() || prefix.homes.front() != member.id) continue;
    if (in_use_ && in_use_(k1, member)) continue;
    if (prefix.homes.size() > 1) {
      DropHome(k1, prefix, member);
    } else if (const Account* to = NextHome(*at, params_.fill)) {
      Place(k1, prefix, to->member);
    }
  }
}

// The first in rendezvous order that isn't a home yet and stays under `fill_share` with it.
const Account* PlacementTable::NextHome(const Entry& entry, double fill_share) const {
  const auto& [k1, prefix] = entry;
  const Account* best = nullptr;
  for (const Account& a : accounts_) {
    if (!accounts_.HasRoom(a, prefix.tokens) || Accounts::Fill(a, prefix.tokens) > fill_share) {
      continue;
    }
    if (std::ranges::find(prefix.homes, a.member.id) != prefix.homes.end()) continue;
    if (best == nullptr || RendezvousScore(k1, a.member) > RendezvousScore(k1, best->member)) {
      best = &a;
    }
  }
  return best;
}

// A wish must last: noise in the shares must not move prefixes.
void PlacementTable::GrowByLoad(Entry& entry, TimePoint now) {
  Prefix& prefix = entry.second;
  const double wanted = std::ceil(load_.LowerShare(prefix.load) *
                                  static_cast<double>(accounts_.size()) * params_.headroom);
  const size_t most = std::min<size_t>(static_cast<size_t>(wanted), accounts_.size());
  if (prefix.homes.empty() || most <= prefix.homes.size()) {
    prefix.wish_since.reset();
    return;
  }
  if (!prefix.wish_since) prefix.wish_since = now;
  if (Seconds(now - *prefix.wish_since) < params_.grow_after_s) return;
  if (const Account* next = NextHome(entry, params_.fill)) {
    AddHome(entry.first, prefix, next->member);
  }
  prefix.wish_since = now;
}

// Spare memory buys second homes, best gain per token first; not while new prefixes arrive,
// which will want that memory.
void PlacementTable::GiveSpare(TimePoint now) {
  if (Seconds(now - last_placed_) < params_.grow_after_s) return;
  const size_t gifts = std::min<size_t>(1 + accounts_.size() / 4, kGiftsMax);
  std::vector<Entry*> by_gain;
  size_t visited = 0;
  for (Entry& entry : prefixes_) {
    if (++visited > kRebalancePrefixes) break;
    const Prefix& prefix = entry.second;
    const bool grows = !prefix.homes.empty() && prefix.homes.size() < accounts_.size();
    if (grows && load_.Value(prefix.load) >= kSpareRequestsMin) by_gain.push_back(&entry);
  }
  const auto best = by_gain.begin() + static_cast<ptrdiff_t>(std::min(gifts, by_gain.size()));
  std::ranges::partial_sort(by_gain, best, std::greater{},
                            [this](const Entry* e) { return GainPerToken(e->second); });
  for (auto at = by_gain.begin(); at != best; ++at) {
    if (const Account* next = NextHome(**at, params_.spare_mark)) {
      AddHome((*at)->first, (*at)->second, next->member);
    }
  }
}

}  // namespace hidane::routing
