#include "routing/accounts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/rng.h"

namespace hidane::routing {
namespace {

WorkerId IdOf(const Account& account) {
  return account.member.id;
}

}  // namespace

bool Accounts::Put(const Member& member) {
  Account* const known = Find(member.id);
  if (known != nullptr && known->member.key == member.key) {
    known->member = member;
    known->limit = Limit(member);
    Refill(*known);
    return false;
  }
  Remove(member.id);
  const auto at = std::ranges::lower_bound(accounts_, member.id, {}, IdOf);
  Account& joined = *accounts_.insert(at, Account());
  joined.member = member;
  joined.limit = Limit(member);
  Reindex();
  return true;
}

void Accounts::Remove(WorkerId id) {
  if (std::erase_if(accounts_, [id](const Account& a) { return IdOf(a) == id; }) > 0) Reindex();
}

void Accounts::Reindex() {
  by_key_.clear();
  firsts_fills_.resize(accounts_.size());
  fills_.resize(accounts_.size());
  for (const Account& account : accounts_) Refill(account);
  for (uint32_t at = 0; at < accounts_.size(); ++at) by_key_.emplace(accounts_[at].member.key, at);
}

void Accounts::Assign(Account& account, const Assigned& more) {
  account.statics += more.statics;
  account.extra += more.extra;
  account.conversations += more.conversations;
  Refill(account);
}

void Accounts::Refill(const Account& account) {
  const auto capacity = static_cast<double>(std::max<uint64_t>(account.member.capacity_tokens, 1));
  firsts_fills_[IndexOf(account)] = static_cast<double>(account.firsts()) / capacity;
  fills_[IndexOf(account)] = Fill(account);
  capacity_max_ = std::max(capacity_max_, account.member.capacity_tokens);
}

const Account* Accounts::Find(WorkerId id) const {
  if (accounts_.empty()) return nullptr;
  // Ids of a pool are mostly in a row: then its place is known.
  const size_t guess = size_t{id.value()} - IdOf(accounts_.front()).value();
  if (guess < accounts_.size() && IdOf(accounts_[guess]) == id) return &accounts_[guess];
  const auto at = std::ranges::lower_bound(accounts_, id, {}, IdOf);
  return at != accounts_.end() && IdOf(*at) == id ? &*at : nullptr;
}

Account* Accounts::Find(WorkerId id) {
  return const_cast<Account*>(std::as_const(*this).Find(id));
}

const Account* Accounts::FindKey(uint64_t key) const {
  const auto at = by_key_.find(key);
  return at == by_key_.end() ? nullptr : &accounts_[at->second];
}

Account* Accounts::FindKey(uint64_t key) {
  return const_cast<Account*>(std::as_const(*this).FindKey(key));
}

uint64_t Accounts::Limit(const Member& member) const {
  const auto filled = static_cast<uint64_t>(fill_ * static_cast<double>(member.capacity_tokens));
  return filled - std::min(filled, member.reserve_tokens);
}

uint64_t Accounts::Assignable(const Account& account) {
  const Member& m = account.member;
  return m.capacity_tokens - std::min(m.capacity_tokens, m.reserve_tokens);
}

namespace {

uint64_t RendezvousBits(uint64_t key, const Member& member) {
  return Mix64(key ^ member.key) >> 11;
}

}  // namespace

double RendezvousScore(uint64_t key, const Member& member) {
  const double unit = (static_cast<double>(RendezvousBits(key, member)) + 0.5) * 0x1p-53;
  return static_cast<double>(member.capacity_tokens) / -std::log(unit);
}

// The score rises with the bits: workers alike, which most are, need no logarithm.
bool RanksBefore(uint64_t key, const Member& a, const Member& b) {
  if (a.capacity_tokens == b.capacity_tokens) {
    return RendezvousBits(key, a) > RendezvousBits(key, b);
  }
  return RendezvousScore(key, a) > RendezvousScore(key, b);
}

}  // namespace hidane::routing
