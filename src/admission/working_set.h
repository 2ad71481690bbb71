#pragma once
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <list>
#include <span>
#include <utility>
#include <vector>

#include "admission/drain_rate.h"
#include "admission/fair_line.h"
#include "admission/tenant_share.h"
#include "admission/tickets.h"
#include "admission/turn.h"
#include "admission/usual_gap.h"

namespace hidane::admission {

struct Params {
  double fill = 0.93;             ///< of the pool's KV that the working set may take
  double entry_fill = 0.88;       ///< up to which newcomers are let in: the rest is for growth
  uint32_t quantum_turns = 20;    ///< then a place is yielded to those in line; 0: never
  IdleRule idle{};                ///< when a conversation's next turn is no longer expected
  uint32_t oldest_every = 8;      ///< each such place goes to who has waited longest, >= 1
  double first_wait_s = 30;       ///< a place's expected wait until one has been given
  uint32_t max_waiting = 4'096;   ///< turns in line; more are refused
  uint32_t max_inside = 65'536;   ///< conversations; more wait
  uint32_t max_tenants = 65'536;  ///< remembered while they have nothing inside or in line
};

/// Working-set admission of one pool: keeps the contexts of the conversations whose next turn is
/// expected, and the static prefixes that they use, within the pool's KV memory. Turns of
/// conversations inside go at once; others wait in line by class, tenant and arrival. While
/// everything fits, nobody waits and a turn costs O(1) without an allocation.
///
/// A conversation gives its place up when it ends, idles past its usual gap, has had its quantum
/// of turns while somebody as urgent waits, is batch work while somebody else waits, or when
/// those inside have outgrown the memory (batch first, last in first). Never during a turn.
///
///   Arrive -> go ------------------------> Done(size)
///          -> wait -> TakeLetIn: go -----> Done(size)
///                  -> Cancel
///          -> refuse
///
/// A pure object: time comes in and never goes back. Not thread-safe.
class WorkingSet {
 public:
  /// REQUIRES: 0 < entry_fill <= fill, oldest_every >= 1.
  explicit WorkingSet(const Params& params);
  WorkingSet(const WorkingSet&) = delete;
  WorkingSet& operator=(const WorkingSet&) = delete;

  /// Each call below may let others in; TakeLetIn() tells who.
  Verdict Arrive(const Turn& turn, TimePoint now);
  /// The turn ended; its conversation's context beyond the prefix is now `own_tokens`.
  void Done(Ticket ticket, uint32_t own_tokens, TimePoint now);
  /// The client of a turn left, in line or inside. A closed ticket is ignored.
  void Cancel(Ticket ticket, TimePoint now);
  /// No further turn will come. Takes effect when those under way are done.
  void End(uint64_t conversation, TimePoint now);
  /// KV memory of the pool, in tokens over all its workers. 0, the first value: unknown, all go.
  void SetCapacity(uint64_t tokens, TimePoint now);
  /// About once a second: conversations that idle too long leave.
  void Tick(TimePoint now);
  /// Turns that waited and may go now, in order. Empties the list.
  std::vector<Ticket> TakeLetIn();
  /// Conversations that gave their place up since, in order: for placement, which may give their
  /// memory away. Empties the list, which holds at most kLeftMax.
  std::vector<uint64_t> TakeLeft() { return std::exchange(left_, {}); }

  /// As it stands now, for a client that waits. REQUIRES: the ticket is in line.
  Verdict Waiting(Ticket ticket, TimePoint now);

  uint64_t tokens() const { return tokens_; }  ///< of those inside, each prefix once
  uint64_t limit() const { return limit_; }
  size_t inside() const { return inside_.size(); }  ///< conversations
  size_t waiting() const { return line_.size(); }   ///< conversations
  bool Inside(uint64_t conversation) const;
  /// Conversation-seconds that the tenant has spent inside while somebody waited.
  double PlaceSeconds(uint32_t tenant, TimePoint now) const;

 private:
  using Members = FairLine::Members;
  using Where = Members::iterator;

  // One turn.
  Where NewMember(const Turn& turn);
  Verdict Continue(Where member, const Turn& turn, TimePoint now);
  Verdict Queue(Where member, const Turn& turn, TimePoint now);
  Verdict Position(const Member& member, TimePoint now);
  void Begin(Where member);
  void Finish(Where member, TimePoint now);
  void Withdraw(Where member, Ticket ticket, TimePoint now);

  // One member.
  void Enter(Where member, TimePoint now);  ///< REQUIRES: in inside_
  void Yield(Where member, TimePoint now);  ///< REQUIRES: inside, no turn under way
  void Forget(Where member, Members& from);
  void Resize(Member& member, uint32_t own_tokens, TimePoint now);
  uint64_t Need(const Member& member) const;   ///< tokens that its entry adds
  uint64_t Frees(const Member& member) const;  ///< tokens that its leaving frees
  bool HasRoomFor(const Member& member) const;
  bool MustYield(const Member& member) const;

  // All.
  void LetIn(TimePoint now);
  void DropIdle(TimePoint now);
  void YieldBatch(const Member& to, TimePoint now);
  void Shed(TimePoint now);

  struct Prefix {
    uint32_t users = 0;
    uint32_t tokens = 0;
  };

  static constexpr size_t kLeftMax = 65'536;

  Params params_;
  uint64_t limit_ = UINT64_MAX;
  uint64_t entry_limit_ = UINT64_MAX;
  uint64_t tokens_ = 0;
  TenantShares shares_;
  FairLine line_;
  DrainRate drain_;
  Members inside_;                                  ///< the last to begin or end a turn in front
  Members made_;                                    ///< one that is on its way in or into the line
  std::array<std::list<Where>, kClasses> entered_;  ///< those inside in order of entry
  boost::unordered_flat_map<uint64_t, Where> by_key_;
  boost::unordered_flat_map<uint64_t, Prefix> prefixes_;
  Tickets tickets_;
  uint32_t waiting_turns_ = 0;
  std::vector<Ticket> let_in_;
  std::vector<uint64_t> left_;
  Duration typical_gap_;
};

}  // namespace hidane::admission
