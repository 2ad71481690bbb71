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

// What one more home is worth: the drop in the largest load per home, per token of memory.
double PlacementTable::GainPerToken(const Prefix& prefix) const {
  const auto homes = static_cast<double>(std::max<size_t>(prefix.homes.size(), 1));
  return load_.Value(prefix.load) / (homes * (homes + 1) * std::max(1u, prefix.tokens));
}

// Over the limit, extra homes leave at once, the least valuable first.
void PlacementTable::Shrink(Account& account) {
  while (account.assigned > Limit(account) && account.extra > 0) {
    Prefix* least = nullptr;
    size_t least_at = 0;
    for (auto& [k1, prefix] : prefixes_) {
      const auto at = std::ranges::find(prefix.homes, account.member.id);
      if (at == prefix.homes.end() || at == prefix.homes.begin()) continue;
      if (least != nullptr && GainPerToken(prefix) >= GainPerToken(*least)) continue;
      least = &prefix;
      least_at = at - prefix.homes.begin();
    }
    if (least == nullptr) return;
    DropHome(*least, least_at);
  }
}

// A worker assigned more than it can hold thrashes for good; one cold prefill elsewhere is
// cheaper, the least recently used prefix first. From the limit to the whole memory it stays:
// that gap is the hysteresis.
void PlacementTable::MoveOut(Account& account) {
  if (account.assigned <= Assignable(account)) return;
  for (auto at = prefixes_.end(); at != prefixes_.begin();) {
    auto& [k1, prefix] = *--at;
    if (account.assigned <= Limit(account)) return;
    if (prefix.homes.empty() || prefix.homes.front() != account.member.id) continue;
    if (prefix.homes.size() > 1) {
      DropHome(prefix, 0);
    } else if (const Account* to = NextHome(*at, params_.fill)) {
      MoveFirstHome(prefix, to->member.id);
    }
  }
}

// The first in rendezvous order that isn't a home yet and stays under `fill_share` with it.
PlacementTable::Account* PlacementTable::NextHome(const Entry& entry, double fill_share) {
  const auto& [k1, prefix] = entry;
  Account* best = nullptr;
  for (Account& a : accounts_) {
    const double capacity = static_cast<double>(a.member.capacity_tokens);
    const auto limit = std::min<double>(static_cast<double>(Limit(a)), fill_share * capacity);
    if (!a.member.takes_new || static_cast<double>(a.assigned + prefix.tokens) > limit) continue;
    if (std::ranges::find(prefix.homes, a.member.id) != prefix.homes.end()) continue;
    if (best == nullptr || Score(k1, a.member) > Score(k1, best->member)) best = &a;
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
  if (const Account* next = NextHome(entry, params_.fill)) AddHome(prefix, next->member.id);
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
      AddHome((*at)->second, next->member.id);
    }
  }
}

}  // namespace hidane::routing
