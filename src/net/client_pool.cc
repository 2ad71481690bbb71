#include "net/client_pool.h"

#include <algorithm>

namespace hidane::net {
namespace {

constexpr Duration kSweepEvery = std::chrono::milliseconds(250);

}  // namespace

std::unique_ptr<Upstream> PoolCore::Take(const Address& address) {
  const auto found = idle_.find(address);
  if (found == idle_.end()) return nullptr;
  const TimePoint oldest = SteadyClock().Now() - options.idle_max;
  while (!found->second.empty()) {
    std::unique_ptr<Upstream> upstream = std::move(found->second.back());
    found->second.pop_back();
    --idle_count;
    upstream->stream.OnHangUp(nullptr);
    const bool good = !upstream->stream.hung_up() && !upstream->stream.has_news();
    if (good && upstream->idle_since > oldest) return upstream;
  }
  return nullptr;
}

void PoolCore::Give(std::unique_ptr<Upstream> upstream) {
  auto& idle = idle_[upstream->address];
  if (idle.size() >= options.idle_per_address_max || upstream->stream.hung_up()) return;
  upstream->stream.ClearDeadline();
  upstream->stream.OnHangUp([this, raw = upstream.get()] { Drop(raw); });
  upstream->idle_since = SteadyClock().Now();
  idle.push_back(std::move(upstream));
  if (idle_count++ == 0) sweep.Arm(kSweepEvery);
}

void PoolCore::Drop(const Upstream* upstream) {
  auto& idle = idle_[upstream->address];
  idle_count -= std::erase_if(idle, [&](const auto& u) { return u.get() == upstream; });
}

void PoolCore::CloseIdle() {
  idle_.clear();
  idle_count = 0;
}

void PoolCore::Sweep() {
  const TimePoint oldest = SteadyClock().Now() - options.idle_max;
  for (auto& [address, idle] : idle_) {
    idle_count -= std::erase_if(idle, [&](const auto& u) { return u->idle_since <= oldest; });
  }
  std::erase_if(idle_, [](const auto& entry) { return entry.second.empty(); });
  if (idle_count > 0) sweep.Arm(kSweepEvery);
}

ClientPool::ClientPool(Loop& loop, ClientOptions options)
    : core_(std::make_shared<PoolCore>(loop, options)) {}
ClientPool::~ClientPool() {
  core_->CloseIdle();
}
Loop& ClientPool::loop() {
  return core_->loop;
}
size_t ClientPool::idle() const {
  return core_->idle_count;
}
void ClientPool::CloseIdle() {
  core_->CloseIdle();
}

}  // namespace hidane::net
