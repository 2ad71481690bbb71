#include "admission/tenant_share.h"

#include <algorithm>

#include "base/assert.h"

namespace hidane::admission {

TenantShare& TenantShares::Find(uint32_t tenant, double weight) {
  HIDANE_ASSERT(weight > 0);
  auto at = tenants_.find(tenant);
  if (at == tenants_.end()) {
    if (tenants_.size() >= bound_) Forget();
    at = tenants_.emplace(tenant, TenantShare{.id = tenant}).first;
  }
  TenantShare& share = at->second;
  share.weight = weight;
  if (!share.active()) share.service = std::max(share.service, virtual_service_);
  return share;
}

const TenantShare* TenantShares::Peek(uint32_t tenant) const {
  const auto at = tenants_.find(tenant);
  return at == tenants_.end() ? nullptr : &at->second;
}

void TenantShares::Waits(TenantShare& tenant, int by, TimePoint now) {
  const uint32_t before = waiting_;
  tenant.waiting += static_cast<uint32_t>(by);
  waiting_ += static_cast<uint32_t>(by);
  if (before == 0 && waiting_ > 0) line_since_ = now;
  if (before > 0 && waiting_ == 0) contended_ += Seconds(now - line_since_);
}

void TenantShares::Holds(TenantShare& tenant, int by, int64_t tokens, TimePoint now) {
  Settle(tenant, now);
  tenant.inside += static_cast<uint32_t>(by);
  tenant.tokens_inside += static_cast<uint64_t>(tokens);
}

double TenantShares::Service(const TenantShare& tenant, TimePoint now) const {
  const double seconds = Contended(now) - tenant.settled;
  return tenant.service + seconds * static_cast<double>(tenant.tokens_inside) / tenant.weight;
}

double TenantShares::PlaceSeconds(const TenantShare& tenant, TimePoint now) const {
  return tenant.place_s + (Contended(now) - tenant.settled) * tenant.inside;
}

void TenantShares::Served(const TenantShare& tenant, TimePoint now) {
  virtual_service_ = std::max(virtual_service_, Service(tenant, now));
}

double TenantShares::Contended(TimePoint now) const {
  return waiting_ == 0 ? contended_ : contended_ + Seconds(now - line_since_);
}

void TenantShares::Settle(TenantShare& tenant, TimePoint now) {
  tenant.service = Service(tenant, now);
  tenant.place_s = PlaceSeconds(tenant, now);
  tenant.settled = Contended(now);
}

void TenantShares::Forget() {
  std::erase_if(tenants_, [](const auto& entry) { return !entry.second.active(); });
}

}  // namespace hidane::admission
