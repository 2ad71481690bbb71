#pragma once
#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "routing/params.h"

namespace hidane::routing {

/// A worker as placement sees it.
struct Member {
  WorkerId id;
  uint64_t key = 0;  ///< stable hash of its name: the rendezvous key
  uint64_t capacity_tokens = 0;
  uint64_t reserve_tokens = 0;  ///< kept free for running requests
  bool takes_new = true;        ///< healthy and not draining
};

/// Tokens of a worker's KV memory, by what they are assigned to.
struct Assigned {
  uint64_t statics = 0;        ///< the prefixes at home there
  uint64_t extra = 0;          ///< of them, where this is not the prefix's first home
  uint64_t conversations = 0;  ///< histories
};

/// What is assigned to one worker's KV memory: static prefixes, once each, and the histories of
/// conversations.
struct Account : Assigned {
  Member member;
  uint64_t limit = 0;      ///< tokens that may be assigned: `fill` of the memory, less the reserve
  uint32_t homes = 0;      ///< prefixes at home here
  TimePoint told_until{};  ///< prefills that other gateways told of keep it busy until then
  double load = 0;         ///< requests of late to them, each shared among its homes

  uint64_t assigned() const { return statics + conversations; }
  uint64_t firsts() const { return assigned() - extra; }  ///< less what can make way
  /// Seconds of prefill that other gateways told of.
  double told_s(TimePoint now) const { return std::max(0.0, Seconds(told_until - now)); }
};

/// One account per worker of a pool, in the order of their ids. Not thread-safe.
class Accounts {
 public:
  explicit Accounts(const Params& params) : fill_(params.fill) {}

  /// Adds or changes; true when it is new. A known id with another key starts with nothing.
  bool Put(const Member& member);
  void Remove(WorkerId id);
  /// Adds to what is assigned; modulo 2^64, so that tokens are also taken back.
  void Assign(Account& account, const Assigned& more);

  Account* Find(WorkerId id);
  const Account* Find(WorkerId id) const;
  Account* FindKey(uint64_t key);
  const Account* FindKey(uint64_t key) const;

  auto begin() { return accounts_.begin(); }
  auto end() { return accounts_.end(); }
  auto begin() const { return accounts_.begin(); }
  auto end() const { return accounts_.end(); }
  size_t size() const { return accounts_.size(); }
  bool empty() const { return accounts_.empty(); }

  /// What running requests leave of the whole memory.
  static uint64_t Assignable(const Account& account);
  /// Share of the memory that would be assigned with `tokens` more.
  static double Fill(const Account& account, uint64_t tokens = 0) {
    const uint64_t capacity = std::max<uint64_t>(account.member.capacity_tokens, 1);
    return static_cast<double>(account.assigned() + tokens) / static_cast<double>(capacity);
  }
  static bool HasRoom(const Account& account, uint64_t tokens) {
    return account.member.takes_new && account.assigned() + tokens <= account.limit;
  }
  /// Share of the memory that is assigned, less what can make way.
  double FirstsFill(const Account& account) const { return firsts_fills_[IndexOf(account)]; }
  /// Of the accounts that `may(account)`, those for which that share is least: all alike, the
  /// first `most` by id. O(workers), but nearly all of them cost one comparison.
  template <class May>
  std::vector<const Account*> LeastFirsts(size_t most, May&& may) const {
    std::vector<const Account*> best;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < firsts_fills_.size(); ++i) {
      if (firsts_fills_[i] > least || (firsts_fills_[i] == least && best.size() == most)) continue;
      if (!may(accounts_[i])) continue;
      if (firsts_fills_[i] < least) best.clear();
      least = firsts_fills_[i];
      best.push_back(&accounts_[i]);
    }
    return best;
  }
  using Filled = std::vector<std::pair<double, const Account*>>;  ///< with the share filled
  /// Of the accounts that `may(account, tokens)` take `tokens` more up to `most` that would be
  /// least filled with them, in that order; ties by id. O(workers), but of a thousand most cost
  /// one comparison while many may.
  template <class May>
  Filled LeastFilled(size_t most, uint64_t tokens, May&& may) const {
    Filled best;
    best.reserve(most + 1);
    const double more = static_cast<double>(tokens) / static_cast<double>(capacity_max_);
    for (size_t i = 0; i < accounts_.size(); ++i) {
      const bool full = best.size() == most;
      if (full && fills_[i] + more >= best.back().first) continue;
      const double fill = Fill(accounts_[i], tokens);
      if (full && fill >= best.back().first) continue;
      if (!may(accounts_[i], tokens)) continue;
      const auto at =
          std::ranges::upper_bound(best, fill, {}, [](const auto& b) { return b.first; });
      best.insert(at, {fill, &accounts_[i]});
      if (full) best.pop_back();
    }
    return best;
  }

 private:
  uint64_t Limit(const Member& member) const;
  size_t IndexOf(const Account& account) const {
    return static_cast<size_t>(&account - accounts_.data());
  }
  void Refill(const Account& account);
  void Reindex();

  double fill_;
  std::vector<Account> accounts_;
  // FirstsFill and Fill of each: a pass over them stays in the first cache.
  std::vector<double> firsts_fills_;
  std::vector<double> fills_;
  uint64_t capacity_max_ = 1;  // of all that there ever were
  boost::unordered_flat_map<uint64_t, uint32_t> by_key_;
};

/// Weighted rendezvous hashing, the weight being memory: the member with the highest score for a
/// key comes first in its order. Source: Schindelhauer and Schomaker, "Weighted Distributed Hash
/// Tables" (2005), the logarithmic method.
double RendezvousScore(uint64_t key, const Member& member);
/// `a` comes before `b` in the rendezvous order of `key`.
bool RanksBefore(uint64_t key, const Member& a, const Member& b);

}  // namespace hidane::routing
