#pragma once
#include <functional>
#include <vector>

#include "routing/accounts.h"
#include "routing/conversations.h"
#include "routing/joint_caches.h"
#include "routing/placement.h"
#include "routing/policy.h"

namespace hidane::routing {

/// A prefix so short that recomputing it costs next to nothing takes no memory: every worker is a
/// home. One that is in the table stays there, so that a learned rate near the bound flips nothing.
bool LivesEverywhere(const Query& query, const WorkerState& any, const PlacementTable& table,
                     const Params& params);

/// For how long the worker's cache has not used what it would forget next; infinite while it has
/// room.
double StaleSeconds(const JointCaches& caches, const WorkerState& worker, TimePoint now);

/// One decision of the policy `prefix`: reads the tables, changes nothing. Lives for one call.
///
///     prefix without a home ------------------> where it fits (kPlaced)
///     conversation with a home ---------------> stays, unless another is cheaper by far, or most
///                                               of its history is gone there anyway
///     conversation that will go on -----------> where its history has room, or its prefix a home
///     anything else --------------------------> the cheapest home, an empty one in a quiet moment,
///                                               or a new one: on spare memory, or where its homes
///                                               do little else
///     homes out, or gone where memory is short > where the cache is stalest (kFailover, kPlaced)
///
/// "Cheap" is predicted TTFT plus the prefill that the choice creates.
class PrefixChoice {
 public:
  PrefixChoice(const Params& params, const Accounts& accounts, const PlacementTable& table,
               const Conversations& talks, const JointCaches& caches, const Query& query,
               WorkerSpan workers, uint64_t draw);

  Choice Make(std::vector<Candidate>& considered);

 private:
  /// Why workers are compared: for the prefix, or for room for a conversation.
  enum class Among { kHomes, kRoom };

  Choice Place(std::vector<Candidate>& considered) const;
  Choice Settle(std::vector<Candidate>& considered) const;
  Choice Continue(WorkerState* last, std::vector<Candidate>& considered) const;
  Choice Emptier(const WorkerState& last, std::vector<Candidate>& considered) const;
  Choice Balance(std::vector<Candidate>& considered) const;
  Choice NewHome() const;
  WorkerState* SecondHome() const;
  WorkerState* EmptiedHome() const;
  WorkerState* BetterHome() const;
  Choice Flee(std::vector<Candidate>& considered) const;

  bool Consider(const WorkerState* worker, std::vector<Candidate>& considered) const;
  CachedBounds KnownCached(const WorkerState& worker) const;
  uint32_t WarmedElsewhere(const WorkerState& worker) const;
  bool Holds(const WorkerState& worker) const;
  bool StillHolds(const WorkerState& worker) const;
  double ToldWait(const WorkerState& worker) const;
  void ConsiderEach(const std::vector<WorkerState*>& workers,
                    std::vector<Candidate>& considered) const;
  void ConsiderFilled(std::span<const Accounts::Filled::value_type> accounts,
                      std::vector<Candidate>& considered) const;
  void ConsiderHomes(std::vector<Candidate>& considered) const;
  void ConsiderRoomiest(uint64_t tokens, double within, std::vector<Candidate>& considered) const;
  void ConsiderAlike(const Accounts::Filled& accounts, double within, uint64_t tokens,
                     std::vector<Candidate>& considered) const;
  void ConsiderOthers(std::vector<Candidate>& considered) const;
  void ConsiderAny(std::vector<Candidate>& considered) const;
  void ConsiderSpare(std::vector<Candidate>& considered) const;
  std::vector<WorkerState*> SomeHomes() const;
  size_t Lot(size_t i, size_t n) const;
  using May = std::function<bool(const Account&, uint64_t tokens)>;
  Accounts::Filled LeastFilledHomes(uint64_t tokens, const May& may) const;
  Accounts::Filled WithOthers(const Accounts::Filled& homes, uint64_t tokens, const May& may) const;
  std::vector<WorkerState*> Usable() const;
  WorkerState* Stalest(const WorkerState* stays) const;
  bool IsHome(const Member& member) const;
  Choice Cheapest(Among among, const std::vector<Candidate>& considered,
                  const WorkerState* stays = nullptr) const;

  const Params& params_;
  const Accounts& accounts_;
  const PlacementTable& table_;
  const Conversations& talks_;
  const JointCaches& caches_;
  const Query& query_;
  WorkerSpan workers_;
  uint64_t draw_;
  size_t most_;                      // workers to compare
  const Conversations::Talk* talk_;  // nullptr: the conversation is new
  bool everywhere_;
  std::span<const WorkerId> homes_;
  std::vector<WorkerId> lots_;  // homes drawn to be compared, where there are many
};

}  // namespace hidane::routing
