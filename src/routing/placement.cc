#include "routing/placement.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rng.h"

namespace hidane::routing {
namespace {

double Share(uint64_t tokens, uint64_t of) {
  return static_cast<double>(tokens) / static_cast<double>(std::max<uint64_t>(of, 1));
}

}  // namespace

PlacementTable::PlacementTable(const Params& params)
    : params_(params),
      prefixes_(params.prefixes_max),
      load_(params.share_halflife_s, params.share_requests_min) {}

PlacementTable::Account* PlacementTable::Find(WorkerId id) {
  return const_cast<Account*>(std::as_const(*this).Find(id));
}

const PlacementTable::Account* PlacementTable::Find(WorkerId id) const {
  const auto at =
      std::ranges::lower_bound(accounts_, id, {}, [](const Account& a) { return a.member.id; });
  return at != accounts_.end() && at->member.id == id ? &*at : nullptr;
}

// What running requests leave of the memory.
uint64_t PlacementTable::Assignable(const Account& account) const {
  const Member& m = account.member;
  return m.capacity_tokens - std::min(m.capacity_tokens, m.reserve_tokens);
}

uint64_t PlacementTable::Limit(const Account& account) const {
  const auto filled =
      static_cast<uint64_t>(params_.fill * static_cast<double>(account.member.capacity_tokens));
  return filled - std::min(filled, account.member.reserve_tokens);
}

// Weighted rendezvous hashing, the weight being memory. Source: Schindelhauer and Schomaker,
// "Weighted Distributed Hash Tables" (2005), the logarithmic method.
double PlacementTable::Score(uint64_t k1, const Member& member) {
  const uint64_t bits = Mix64(k1 ^ member.key) >> 11;
  const double unit = (static_cast<double>(bits) + 0.5) * 0x1p-53;
  return static_cast<double>(member.capacity_tokens) / -std::log(unit);
}

void PlacementTable::PutWorker(const Member& member) {
  if (Account* known = Find(member.id); known != nullptr) {
    const bool other = known->member.key != member.key;
    if (!other) {
      known->member = member;
      return;
    }
    RemoveWorker(member.id);
  }
  const auto at = std::ranges::lower_bound(accounts_, member.id, {},
                                           [](const Account& a) { return a.member.id; });
  accounts_.insert(at, Account{.member = member});
  TakeTopRanked(member.id);
}

void PlacementTable::TakeTopRanked(WorkerId joined) {
  const Account& account = *Find(joined);
  if (!account.member.takes_new) return;
  for (Entry& entry : prefixes_) {
    const uint64_t k1 = entry.first;
    Prefix& prefix = entry.second;
    if (prefix.homes.empty() || account.assigned + prefix.tokens > Limit(account)) continue;
    const double score = Score(k1, account.member);
    const bool heads = std::ranges::all_of(accounts_, [&](const Account& a) {
      return a.member.id == joined || Score(k1, a.member) < score;
    });
    if (!heads) continue;
    MoveFirstHome(prefix, joined);
  }
}

void PlacementTable::RemoveWorker(WorkerId id) {
  if (Find(id) == nullptr) return;
  for (auto& [k1, prefix] : prefixes_) {
    const auto at = std::ranges::find(prefix.homes, id);
    if (at != prefix.homes.end()) DropHome(prefix, at - prefix.homes.begin());
  }
  std::erase_if(accounts_, [id](const Account& a) { return a.member.id == id; });
}

void PlacementTable::AddHome(Prefix& prefix, WorkerId id) {
  Account& account = *Find(id);
  account.assigned += prefix.tokens;
  if (!prefix.homes.empty()) account.extra += prefix.tokens;
  ++account.homes;
  prefix.homes.push_back(id);
}

void PlacementTable::DropHome(Prefix& prefix, size_t at) {
  Account& account = *Find(prefix.homes[at]);
  account.assigned -= prefix.tokens;
  --account.homes;
  if (at > 0) account.extra -= prefix.tokens;
  prefix.homes.erase(prefix.homes.begin() + static_cast<ptrdiff_t>(at));
  if (at == 0 && !prefix.homes.empty()) Find(prefix.homes.front())->extra -= prefix.tokens;
}

// First homes are not in `extra`, on either side.
void PlacementTable::MoveFirstHome(Prefix& prefix, WorkerId to) {
  Account& old = *Find(prefix.homes.front());
  Account& now = *Find(to);
  old.assigned -= prefix.tokens;
  --old.homes;
  now.assigned += prefix.tokens;
  ++now.homes;
  prefix.homes.front() = to;
}

// Estimates of a prefix's size change as the byte/token ratio is learned.
void PlacementTable::Resize(Prefix& prefix, uint32_t tokens) {
  for (const WorkerId& id : prefix.homes) {
    Account& account = *Find(id);
    account.assigned += tokens - static_cast<uint64_t>(prefix.tokens);
    if (&id != &prefix.homes.front()) account.extra += tokens - uint64_t{prefix.tokens};
  }
  prefix.tokens = tokens;
}

PlacementTable::Sight PlacementTable::See(uint64_t k1, uint32_t tokens, double prefill_s,
                                          const Wait& wait, TimePoint now) {
  if (accounts_.empty()) return {};
  Prefix& prefix = prefixes_.Touch(k1, [this](Entry& oldest) {
    while (!oldest.second.homes.empty()) DropHome(oldest.second, oldest.second.homes.size() - 1);
  });
  prefix.seen = now;
  load_.Add(prefix.load, now);
  if (prefix.tokens != tokens) Resize(prefix, tokens);
  const bool placed = prefix.homes.empty();
  if (placed) {
    const WorkerId home = Place(k1, prefix, prefill_s, wait, now);
    AddHome(prefix, home);
    last_placed_ = now;
    Shrink(*Find(home));
  }
  if (now >= next_rebalance_) {
    Rebalance(now);
    next_rebalance_ = now + FromSeconds(params_.rebalance_every_s);
  }
  return {prefix.homes, placed};
}

// Of the workers where it fits (extra homes of others would make way), the least assigned one
// among those that could begin within one prefill of the earliest.
WorkerId PlacementTable::Place(uint64_t k1, Prefix& prefix, double prefill_s, const Wait& wait,
                               TimePoint now) {
  struct Option {
    const Account* account;
    double wait;
    double fill;
  };
  const auto score = [k1](const Option& o) { return Score(k1, o.account->member); };
  std::vector<Option> options;
  const auto collect = [&](bool must_fit, bool must_take) {
    options.clear();
    for (const Account& a : accounts_) {
      const bool fits = a.assigned - a.extra + prefix.tokens <= Limit(a);
      if ((must_fit && !fits) || (must_take && !a.member.takes_new)) continue;
      options.push_back(
          {&a, wait(a.member.id), Share(a.assigned - a.extra, a.member.capacity_tokens)});
    }
    return !options.empty();
  };
  bool fits = collect(true, true);
  while (!fits && FreeIdle(now)) fits = collect(true, true);
  if (!fits && !collect(false, true)) collect(false, false);

  if (options.size() > params_.first_sight_choices) {
    const auto end = options.begin() + std::max(1u, params_.first_sight_choices);
    std::ranges::partial_sort(options, end, std::greater{}, score);
    options.erase(end, options.end());
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

// Makes room from prefixes that nobody has used for long; false when there is none.
bool PlacementTable::FreeIdle(TimePoint now) {
  if (prefixes_.empty()) return false;
  Entry& oldest = prefixes_.oldest();
  if (Seconds(now - oldest.second.seen) < params_.idle_release_s) return false;
  while (!oldest.second.homes.empty()) DropHome(oldest.second, oldest.second.homes.size() - 1);
  prefixes_.Erase(oldest.first);
  return true;
}

const WorkerId* PlacementTable::Refuge(uint64_t k1, uint32_t tokens,
                                       const std::function<bool(WorkerId)>& usable) const {
  const Account* best = nullptr;
  bool best_fits = false;
  for (const Account& a : accounts_) {
    if (!usable(a.member.id)) continue;
    const bool fits = a.assigned + tokens <= Assignable(a);
    const bool better = best == nullptr || (fits && !best_fits) ||
                        (fits == best_fits && Score(k1, a.member) > Score(k1, best->member));
    if (!better) continue;
    best = &a;
    best_fits = fits;
  }
  return best == nullptr ? nullptr : &best->member.id;
}

uint64_t PlacementTable::assigned_tokens(WorkerId id) const {
  const Account* account = Find(id);
  return account == nullptr ? 0 : account->assigned;
}

uint32_t PlacementTable::prefixes_at(WorkerId id) const {
  const Account* account = Find(id);
  return account == nullptr ? 0 : account->homes;
}

}  // namespace hidane::routing
