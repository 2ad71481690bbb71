#pragma once
#include <cstdint>
#include <map>

#include "base/clock.h"

namespace hidane::admission {

/// What one tenant has had of the working set while others waited.
struct TenantShare {
  uint32_t id = 0;
  double weight = 1;
  uint32_t inside = 0;         ///< conversations
  uint32_t waiting = 0;        ///< conversations
  uint64_t tokens_inside = 0;  ///< their contexts; a shared prefix counts for each
  double service = 0;          ///< token-seconds by weight, up to `settled`
  double place_s = 0;          ///< conversation-seconds, up to `settled`
  double settled = 0;          ///< contended seconds
  uint32_t rank = 0;           ///< scratch of FairLine

  bool active() const { return inside + waiting > 0; }
};

/// Shares the pool's tokens among tenants by weight: each is charged for the tokens that it holds
/// times the time that it holds them, on a clock that runs only while somebody waits. The least
/// charged goes first. A tenant that comes back starts where the tenants of the line are, so that
/// absence earns nothing. O(log tenants) a call, O(1) without a new tenant.
/// Source: Sheng et al., Fairness in Serving Large Language Models (VTC), arXiv 2401.00588.
class TenantShares {
 public:
  /// Tenants with nothing inside or in line are forgotten beyond `bound` of them.
  explicit TenantShares(size_t bound) : bound_(bound) {}

  /// Stable until the tenant is inactive.
  TenantShare& Find(uint32_t tenant, double weight);
  /// nullptr: unknown.
  const TenantShare* Peek(uint32_t tenant) const;

  /// A conversation joined or left the line.
  void Waits(TenantShare& tenant, int by, TimePoint now);
  /// A conversation entered (`by` 1), left (-1) or changed its size (0).
  void Holds(TenantShare& tenant, int by, int64_t tokens, TimePoint now);
  /// Charged so far, in token-seconds by weight.
  double Service(const TenantShare& tenant, TimePoint now) const;
  /// Conversation-seconds inside while somebody waited.
  double PlaceSeconds(const TenantShare& tenant, TimePoint now) const;
  /// `tenant` is the line's choice: later tenants start from its charge.
  void Served(const TenantShare& tenant, TimePoint now);

 private:
  double Contended(TimePoint now) const;
  void Settle(TenantShare& tenant, TimePoint now);
  void Forget();

  size_t bound_;
  std::map<uint32_t, TenantShare> tenants_;
  uint32_t waiting_ = 0;        ///< conversations in line
  double contended_ = 0;        ///< seconds with a line, before the present one
  TimePoint line_since_{};      ///< meaningful while waiting_ > 0
  double virtual_service_ = 0;  ///< where a tenant starts
};

}  // namespace hidane::admission
