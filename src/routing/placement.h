#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "routing/accounts.h"
#include "routing/delta_log.h"
#include "routing/keep_warm.h"
#include "routing/load_share.h"
#include "routing/lru_map.h"
#include "routing/params.h"

namespace hidane::routing {

/// Which workers a static prefix (K1) lives on. Hash proposes, memory disposes, replicas agree: a
/// new prefix goes where it fits, popular ones get more homes while load and spare memory say so,
/// and gateways that tell each other their deltas have the same table.
///
///     K1 -> homes [w2, w0], tokens, share of load
///
/// What is shared of an entry is a first home and a set of others, each with the stamp of its
/// latest write; homes are those of them that are members. So the same writes and the same
/// members give the same homes, in whatever order they came, however often.
///
/// The rule, its reasons and its parameters: docs/placement.md. Deterministic. Bounded by
/// Params::prefixes_max. Not thread-safe.
/// Cost: a known prefix O(1); a new one O(workers); a join or a leave O(table); once a second a
/// pass over the kRebalancePrefixes most recent prefixes.
class PlacementTable {
 public:
  static constexpr size_t kRebalancePrefixes = 4'096;

  /// REQUIRES: both outlive the table.
  PlacementTable(const Params& params, Accounts& accounts, DeltaLog& log);

  /// Joins or changes. A worker that joins takes the prefixes whose rendezvous order it heads,
  /// 1/N of them, as far as they fit.
  void PutWorker(const Member& member);
  /// Only prefixes at home there move: to their other homes, else anew at their next sight.
  void RemoveWorker(WorkerId id);

  bool Knows(uint64_t k1) const { return prefixes_.Find(k1) != nullptr; }
  /// The first is where the prefix was placed. Empty: it has none yet. Valid until the next write.
  std::span<const WorkerId> Homes(uint64_t k1) const;
  /// O(log homes).
  bool IsHome(uint64_t k1, const Member& member) const;
  /// Of the prefix; 0 where it is unknown.
  uint32_t Tokens(uint64_t k1) const;
  /// A home that no request has been sent to yet, so that it is cold; nullptr when all are warm.
  const WorkerId* ColdHome(uint64_t k1) const;
  /// It is most of what its homes do: another one would be worth what it pushes out.
  bool CrowdsHomes(uint64_t k1) const;
  /// Its load is worth a second home to choose from, and memory is to spare somewhere.
  bool WantsChoice(uint64_t k1) const;
  /// Tokens that may be assigned where extra homes are given for nothing but choice.
  uint64_t SpareLimit(const Account& account) const;
  /// Another gateway made it a home and computed the prefix there.
  bool WarmedElsewhere(uint64_t k1, const Member& member) const;

  /// Some worker has room for the first home of a prefix of `tokens`.
  bool Fits(uint32_t tokens) const;
  /// Predicted seconds until the worker would begin a prefill.
  using Wait = std::function<double(WorkerId)>;
  /// Where a prefix without a home should live: of the workers where it fits (extra homes of
  /// others would make way) the least assigned one among those that could begin about as soon as
  /// the earliest: near ties by `prefill_s`, what computing it takes. REQUIRES: there is a member.
  WorkerId Propose(uint64_t k1, uint32_t tokens, double prefill_s, const Wait& wait,
                   TimePoint now) const;
  /// Where a prefix goes whose homes are all out: the first in its rendezvous order that `usable`
  /// allows and that has room, else the first allowed; nullptr when there is none.
  const WorkerId* Refuge(uint64_t k1, uint32_t tokens,
                         const std::function<bool(WorkerId)>& usable) const;

  /// A request with prefix `k1` of `tokens`, served by `worker`, which becomes a home of it
  /// where it isn't one.
  void Serve(uint64_t k1, uint32_t tokens, WorkerId worker, TimePoint now);
  /// Its first home is there from now on. REQUIRES: the prefix is known.
  void Move(uint64_t k1, WorkerId worker);
  /// As Serve, by a worker that is none of its homes and doesn't become one.
  void See(uint64_t k1, uint32_t tokens, TimePoint now);
  /// Another gateway serves a request with this prefix there: it isn't idle. An unknown one is
  /// ignored.
  void Use(uint64_t k1, uint64_t worker_key, TimePoint now);
  /// What is cached there is gone. Who computes a prefix there again tells the others. O(table).
  void Emptied(uint64_t worker_key);

  using Due = std::function<bool(uint64_t k1, const Kept& kept, WorkerId home)>;
  /// Of the kRebalancePrefixes most recent prefixes those homes that this gateway gave, where the
  /// prefix was computed and all that is assigned fits the memory, and that are `due`; they count
  /// as refreshed.
  std::vector<Refresh> TakeRefreshes(const Due& due, TimePoint now);

  /// A conversation with this prefix lives there, so the home must not be taken back.
  using InUse = std::function<bool(uint64_t k1, const Member& member)>;
  void SetInUse(InUse in_use) { in_use_ = std::move(in_use); }
  /// What computing a prefix takes, to know what others' placements mean for their workers.
  void SetPrefillRate(double tokens_per_s) { prefill_tokens_per_s_ = tokens_per_s; }

  /// REQUIRES: not a kConversation.
  void Merge(const Delta& delta, TimePoint now);
  /// Appends what rebuilds this table elsewhere.
  void AppendSnapshot(std::vector<Delta>& out) const;

  size_t size() const { return prefixes_.size(); }

 private:
  enum class Cache : uint8_t {
    kWarm,
    kCold,     // given here, and no request was sent there yet
    kTold,     // another gateway computed the prefix there
    kEmptied,  // the worker's cache was emptied, and no request was sent there since
  };
  struct Claim {
    uint64_t worker = 0;  // key
    Stamp stamp;
    bool lives = false;
    Cache cache = Cache::kWarm;
    uint32_t refreshes = 0;  // since its last request
    TimePoint used{};        // its last request, as far as known, or refresh by this gateway
  };
  struct Prefix {
    uint32_t tokens = 0;
    bool seen_here = false;       // else `tokens` is what others said
    std::vector<WorkerId> homes;  // follows from claims and members: Sync
    Claim first;
    std::vector<Claim> others;  // by worker; dropped ones too, so that late adds lose
    uint32_t cold = 0;          // of the homes: given, and not sent a request yet
    LoadShare::Count load;
    TimePoint seen{};
    std::optional<TimePoint> wish_since;  // more homes wanted since
  };
  using Entry = LruMap<Prefix>::Entry;

  /// The kRebalancePrefixes most recent ones.
  template <class Visit>
  void ForRecent(Visit&& visit) {
    size_t visited = 0;
    for (Entry& entry : prefixes_) {
      if (++visited > kRebalancePrefixes) return;
      visit(entry);
    }
  }
  WorkerId LeastFilledSoon(uint64_t k1, std::span<const Account* const> options,
                           std::span<const double> waits, double near) const;
  Prefix& Touch(uint64_t k1);
  void Forget(Entry& entry);
  void Resize(Prefix& prefix, uint32_t tokens);
  void Count(const Prefix& prefix, bool add);
  void Sync(uint64_t k1, Prefix& prefix);
  static const Claim* FindClaim(const Prefix& prefix, uint64_t worker);
  static Claim* FindClaim(Prefix& prefix, uint64_t worker);
  static const Claim* LivingClaim(const Prefix& prefix, uint64_t worker);
  static Claim* LivingClaim(Prefix& prefix, uint64_t worker);
  static Claim& ClaimOf(Prefix& prefix, uint64_t worker);
  /// REQUIRES: `member` has an account.
  static bool IsHome(const Prefix& prefix, const Member& member) {
    return LivingClaim(prefix, member.key) != nullptr;
  }

  void Tell(Delta::Kind kind, uint64_t k1, const Prefix& prefix, const Claim& claim);
  void Place(uint64_t k1, Prefix& prefix, const Member& member);
  void AddHome(uint64_t k1, Prefix& prefix, const Member& member);
  void Warm(uint64_t k1, Prefix& prefix, const Member& member, TimePoint now);
  void DropHome(uint64_t k1, Prefix& prefix, const Member& member);
  void DropOther(uint64_t k1, Prefix& prefix, const Member& member);
  void TakeTopRanked(const Account& joined);

  void Rebalance(TimePoint now);
  void ForgetIdle(TimePoint now);
  void DropEmptied(Entry& entry);
  bool MayDrop(const Entry& entry, const Account& account) const;
  void Shrink(Account& account);
  void ShrinkAll();
  bool OnlyUsable(const Prefix& prefix, const Member& member) const;
  void GrowByLoad(Entry& entry, TimePoint now);
  void GiveSpare();
  double PartOfWorker(const Prefix& prefix, size_t homes) const;
  size_t Deserved(const Prefix& prefix, double headroom) const;
  template <class LimitOf>
  Account* NextHome(const Entry& entry, LimitOf&& limit);
  void SumLoads();
  void Grow(Entry& entry, Account& to);
  void MoveByLoad(TimePoint now);
  bool Mine(const Claim& claim) const { return claim.stamp.replica == params_.replica; }
  double GainPerToken(const Prefix& prefix) const;

  Params params_;
  Accounts& accounts_;
  DeltaLog& log_;
  LruMap<Prefix> prefixes_;
  LoadShare load_;
  InUse in_use_;
  double prefill_tokens_per_s_;
  uint64_t spare_tokens_ = UINT64_MAX;  // most that any worker has under its spare limit, of late
  TimePoint next_rebalance_{};
  TimePoint last_change_{};  // of a first home, here or told
};

}  // namespace hidane::routing
