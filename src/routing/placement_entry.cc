// One entry of the placement table: what is shared of it, and the homes that follow.
#include <algorithm>
#include <utility>

#include "routing/placement.h"

namespace hidane::routing {

PlacementTable::Prefix& PlacementTable::Touch(uint64_t k1) {
  return prefixes_.Touch(k1, [this](Entry& oldest) { Count(oldest.second, false); });
}

void PlacementTable::Forget(Entry& entry) {
  Count(entry.second, false);
  prefixes_.Erase(entry.first);
}

// Estimates of a prefix's size change as the byte/token ratio is learned.
void PlacementTable::Resize(Prefix& prefix, uint32_t tokens) {
  Count(prefix, false);
  prefix.tokens = tokens;
  Count(prefix, true);
}

void PlacementTable::Count(const Prefix& prefix, bool add) {
  const uint64_t tokens = add ? prefix.tokens : -uint64_t{prefix.tokens};
  for (const WorkerId& home : prefix.homes) {
    Account* const account = accounts_.Find(home);
    if (account == nullptr) continue;  // it left, and its account with it
    const bool extra = &home != &prefix.homes.front();
    accounts_.Assign(*account, {.statics = tokens, .extra = extra ? tokens : 0});
    account->homes += add ? 1u : -1u;
  }
}

// Homes are the claims whose workers are members, the first one's in front. Where that one is
// gone, the one that heads the prefix's rendezvous order stands in.
void PlacementTable::Sync(uint64_t k1, Prefix& prefix) {
  Count(prefix, false);
  prefix.homes.clear();
  prefix.cold = 0;
  const Account* const first = accounts_.FindKey(prefix.first.worker);
  const bool placed = prefix.first.lives && first != nullptr;
  if (placed) prefix.homes.push_back(first->member.id);
  size_t heads = 0;
  for (const Claim& claim : prefix.others) {
    const Account* const account = accounts_.FindKey(claim.worker);
    if (!claim.lives || account == nullptr || (placed && account == first)) continue;
    prefix.homes.push_back(account->member.id);
    prefix.cold += claim.cache == Cache::kCold;
    const Member& front = accounts_.Find(prefix.homes[heads])->member;
    if (!placed && RanksBefore(k1, account->member, front)) heads = prefix.homes.size() - 1;
  }
  if (heads > 0) std::swap(prefix.homes[0], prefix.homes[heads]);
  prefix.wish_since.reset();
  Count(prefix, true);
}

const PlacementTable::Claim* PlacementTable::FindClaim(const Prefix& prefix, uint64_t worker) {
  const auto at = std::ranges::lower_bound(prefix.others, worker, {}, &Claim::worker);
  return at != prefix.others.end() && at->worker == worker ? &*at : nullptr;
}

PlacementTable::Claim* PlacementTable::FindClaim(Prefix& prefix, uint64_t worker) {
  return const_cast<Claim*>(FindClaim(std::as_const(prefix), worker));
}

const PlacementTable::Claim* PlacementTable::LivingClaim(const Prefix& prefix, uint64_t worker) {
  const Claim* const claim =
      prefix.first.worker == worker ? &prefix.first : FindClaim(prefix, worker);
  return claim != nullptr && claim->lives ? claim : nullptr;
}

PlacementTable::Claim* PlacementTable::LivingClaim(Prefix& prefix, uint64_t worker) {
  return const_cast<Claim*>(LivingClaim(std::as_const(prefix), worker));
}

PlacementTable::Claim& PlacementTable::ClaimOf(Prefix& prefix, uint64_t worker) {
  if (Claim* const known = FindClaim(prefix, worker)) return *known;
  const auto at = std::ranges::lower_bound(prefix.others, worker, {}, &Claim::worker);
  return *prefix.others.insert(at, {.worker = worker, .stamp = {}});
}

void PlacementTable::Tell(Delta::Kind kind, uint64_t k1, const Prefix& prefix, const Claim& claim) {
  log_.Push({.key = k1,
             .worker = claim.worker,
             .stamp = claim.stamp,
             .tokens = prefix.tokens,
             .kind = kind});
}

// A first home is never among the others too, so that moving it leaves nothing behind.
void PlacementTable::Place(uint64_t k1, Prefix& prefix, const Member& member) {
  prefix.first = {.worker = member.key, .stamp = log_.Next(), .lives = true};
  Tell(Delta::Kind::kPlace, k1, prefix, prefix.first);
  DropOther(k1, prefix, member);
  Sync(k1, prefix);
}

void PlacementTable::AddHome(uint64_t k1, Prefix& prefix, const Member& member) {
  Claim& claim = ClaimOf(prefix, member.key);
  claim = {.worker = member.key, .stamp = log_.Next(), .lives = true, .cache = Cache::kCold};
  Sync(k1, prefix);
}

// Others hear of a new home once it computes the prefix: until then it is of no use to them.
void PlacementTable::Warm(uint64_t k1, Prefix& prefix, const Member& member, TimePoint now) {
  Claim* const claim = LivingClaim(prefix, member.key);
  if (claim == nullptr) return;
  claim->used = now;
  claim->refreshes = 0;
  if (claim->cache != Cache::kCold && claim->cache != Cache::kEmptied) return;
  if (claim->cache == Cache::kEmptied) claim->stamp = log_.Next();
  if (claim->cache == Cache::kCold) --prefix.cold;
  claim->cache = Cache::kWarm;
  const bool first = claim == &prefix.first;
  Tell(first ? Delta::Kind::kPlace : Delta::Kind::kAddHome, k1, prefix, *claim);
}

// REQUIRES: it has another home. Where the first one goes, the second becomes first.
void PlacementTable::DropHome(uint64_t k1, Prefix& prefix, const Member& member) {
  if (prefix.first.worker == member.key) {
    const bool in_front = prefix.homes.front() == member.id;
    Place(k1, prefix, accounts_.Find(prefix.homes[in_front ? 1 : 0])->member);
  }
  DropOther(k1, prefix, member);
  Sync(k1, prefix);
}

void PlacementTable::DropOther(uint64_t k1, Prefix& prefix, const Member& member) {
  Claim* const claim = FindClaim(prefix, member.key);
  if (claim == nullptr || !claim->lives) return;
  *claim = {.worker = member.key, .stamp = log_.Next(), .lives = false};
  Tell(Delta::Kind::kDropHome, k1, prefix, *claim);
}

void PlacementTable::Merge(const Delta& delta, TimePoint now) {
  log_.Seen(delta.stamp);
  const bool known = Knows(delta.key);
  Prefix& prefix = known ? *prefixes_.Find(delta.key) : Touch(delta.key);
  if (!known) prefix.seen = now;
  if (!prefix.seen_here && delta.tokens > prefix.tokens) Resize(prefix, delta.tokens);
  Claim& claim = delta.kind == Delta::Kind::kPlace ? prefix.first : ClaimOf(prefix, delta.worker);
  if (delta.stamp <= claim.stamp) return;
  const bool lives = delta.kind != Delta::Kind::kDropHome;
  claim = {.worker = delta.worker,
           .stamp = delta.stamp,
           .lives = lives,
           .cache = lives ? Cache::kTold : Cache::kWarm};
  last_change_ = now;
  Sync(delta.key, prefix);
  Account* const account = accounts_.FindKey(delta.worker);
  if (account == nullptr || delta.kind == Delta::Kind::kDropHome) return;
  const Duration prefill = FromSeconds(prefix.tokens / prefill_tokens_per_s_);
  account->told_until = std::max(account->told_until, now) + prefill;
}

void PlacementTable::AppendSnapshot(std::vector<Delta>& out) const {
  for (const auto& [k1, prefix] : prefixes_) {
    const auto append = [&out, key = k1, tokens = prefix.tokens](const Claim& claim,
                                                                 Delta::Kind kind) {
      if (claim.stamp.epoch == 0) return;
      out.push_back({.key = key,
                     .worker = claim.worker,
                     .stamp = claim.stamp,
                     .tokens = tokens,
                     .kind = kind});
    };
    append(prefix.first, Delta::Kind::kPlace);
    for (const Claim& claim : prefix.others) {
      append(claim, claim.lives ? Delta::Kind::kAddHome : Delta::Kind::kDropHome);
    }
  }
}

}  // namespace hidane::routing
