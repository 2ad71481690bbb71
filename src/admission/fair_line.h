#pragma once
#include <cstdint>
#include <list>

#include "admission/member.h"
#include "admission/tenant_share.h"

namespace hidane::admission {

/// The line in front of the working set. Who is next: the more urgent class; in it the tenant
/// that has been charged least; of that tenant the first to arrive. Each `oldest_every`-th place
/// goes to the one that has waited longest, whatever its class and tenant, so that nobody waits
/// for ever. Next and Ahead walk the line.
class FairLine {
 public:
  using Members = std::list<Member>;

  FairLine(TenantShares& shares, uint32_t oldest_every)
      : shares_(shares), oldest_every_(oldest_every) {}

  /// Takes the member out of `from`, to the end of the line.
  void Join(Members& from, Members::iterator member, TimePoint now);
  /// Hands the member over to the front of `to`.
  void Leave(Members::iterator member, Members& to, TimePoint now);
  /// As Leave, and counts the place as given by the rule.
  void LetIn(Members::iterator member, Members& to, TimePoint now);

  /// end(): nobody waits.
  Members::iterator Next(TimePoint now);
  Members::iterator end() { return line_.end(); }

  struct Ahead {
    uint32_t members = 0;
    uint64_t tokens = 0;  ///< contexts of those, each whole
  };
  /// Those likely to go before `member` if the tenants of its class take turns.
  Ahead AheadOf(const Member& member);

  bool empty() const { return line_.empty(); }
  size_t size() const { return line_.size(); }
  /// Somebody of class `cls` or a more urgent one waits.
  bool WaitsFor(Class cls) const;
  const Member& first() const { return line_.front(); }  ///< REQUIRES: not empty

 private:
  TenantShares& shares_;
  uint32_t oldest_every_;
  uint32_t places_given_ = 0;
  uint32_t waiting_[kClasses] = {};
  Members line_;  ///< by arrival
};

}  // namespace hidane::admission
