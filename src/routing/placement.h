#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "routing/load_share.h"
#include "routing/lru_map.h"
#include "routing/params.h"

namespace hidane::routing {

/// Which workers a static prefix (K1) lives on. Hash proposes, memory disposes: a new prefix
/// goes where it fits, popular ones get more homes while load and spare memory say so.
///
///     K1 -> homes [w2, w0], tokens, share of load         one account per worker:
///                                                          assigned = static tokens, once each
///
/// The rule, its reasons and its parameters: docs/placement.md. Deterministic: the same members
/// and the same calls give the same table. Bounded by Params::prefixes_max. Not thread-safe.
/// Cost: a known prefix O(1); a new one, a join or a leave O(workers) or O(table); once a second
/// a pass over the kRebalancePrefixes most recent prefixes.
class PlacementTable {
 public:
  explicit PlacementTable(const Params& params);

  struct Member {
    WorkerId id;
    uint64_t key = 0;  ///< stable hash of its name: the rendezvous key
    uint64_t capacity_tokens = 0;
    uint64_t reserve_tokens = 0;  ///< kept free for running requests
    bool takes_new = true;        ///< healthy and not draining
  };
  /// Joins or changes. A worker that joins takes the prefixes whose rendezvous order it heads,
  /// 1/N of them, as far as they fit.
  void PutWorker(const Member& member);
  /// Only prefixes at home there move: to their other homes, else anew at their next sight.
  void RemoveWorker(WorkerId id);

  /// Predicted seconds until the worker would begin a prefill.
  using Wait = std::function<double(WorkerId)>;
  struct Sight {
    std::span<const WorkerId> homes;  ///< never empty while a member is; valid until next call
    bool placed = false;              ///< the first home was chosen now
  };
  /// One request with prefix `k1` of `tokens`; `prefill_s` is what computing it takes.
  Sight See(uint64_t k1, uint32_t tokens, double prefill_s, const Wait& wait, TimePoint now);

  bool Knows(uint64_t k1) { return prefixes_.Find(k1) != nullptr; }
  /// Where a prefix goes whose homes are all out: the first in its rendezvous order that `usable`
  /// allows and that has room, else the first allowed. Changes nothing.
  const WorkerId* Refuge(uint64_t k1, uint32_t tokens,
                         const std::function<bool(WorkerId)>& usable) const;

  uint64_t assigned_tokens(WorkerId id) const;
  uint32_t prefixes_at(WorkerId id) const;
  size_t size() const { return prefixes_.size(); }

 private:
  struct Account {
    Member member;
    uint64_t assigned = 0;  // tokens of all homes here
    uint64_t extra = 0;     // of those that are not a prefix's first home
    uint32_t homes = 0;
  };
  struct Prefix {
    uint32_t tokens = 0;
    std::vector<WorkerId> homes;  // the first is where it was placed
    LoadShare::Count load;
    TimePoint seen{};
    std::optional<TimePoint> wish_since;  // more homes wanted since
  };
  using Entry = LruMap<Prefix>::Entry;

  Account* Find(WorkerId id);
  const Account* Find(WorkerId id) const;
  uint64_t Limit(const Account& account) const;
  uint64_t Assignable(const Account& account) const;
  static double Score(uint64_t k1, const Member& member);

  void AddHome(Prefix& prefix, WorkerId id);
  void DropHome(Prefix& prefix, size_t at);
  void MoveFirstHome(Prefix& prefix, WorkerId to);
  void Resize(Prefix& prefix, uint32_t tokens);
  WorkerId Place(uint64_t k1, Prefix& prefix, double prefill_s, const Wait& wait, TimePoint now);
  bool FreeIdle(TimePoint now);
  void TakeTopRanked(WorkerId joined);

  void Rebalance(TimePoint now);
  void Shrink(Account& account);
  void MoveOut(Account& account);
  void GrowByLoad(Entry& entry, TimePoint now);
  void GiveSpare(TimePoint now);
  Account* NextHome(const Entry& entry, double fill_share);
  double GainPerToken(const Prefix& prefix) const;

  Params params_;
  std::vector<Account> accounts_;  // by id, so that order of joining doesn't show
  LruMap<Prefix> prefixes_;
  LoadShare load_;
  TimePoint next_rebalance_{};
  TimePoint last_placed_{};
};

}  // namespace hidane::routing
