#include "sim/orphans.h"

#include <algorithm>

namespace hidane::sim {

std::optional<uint64_t> Orphans::Add(uint64_t fingerprint, uint64_t run, TimePoint now) {
  orphans_.push_back({fingerprint, run, now + options_.grace});
  if (orphans_.size() <= options_.most) return std::nullopt;
  const uint64_t oldest = orphans_.front().run;
  orphans_.pop_front();
  return oldest;
}

void Orphans::Answered(uint64_t run, TimePoint now) {
  const auto at = std::ranges::find(orphans_, run, &Orphan::run);
  if (at != orphans_.end()) at->until = now + options_.keep;
}

std::optional<uint64_t> Orphans::Adopt(uint64_t fingerprint) {
  const auto at = std::ranges::find(orphans_, fingerprint, &Orphan::fingerprint);
  if (at == orphans_.end()) return std::nullopt;
  const uint64_t run = at->run;
  orphans_.erase(at);
  return run;
}

void Orphans::Forget(uint64_t run) {
  std::erase_if(orphans_, [run](const Orphan& orphan) { return orphan.run == run; });
}

std::vector<uint64_t> Orphans::TakeOverdue(TimePoint now) {
  std::vector<uint64_t> overdue;
  for (const Orphan& orphan : orphans_) {
    if (orphan.until <= now) overdue.push_back(orphan.run);
  }
  for (const uint64_t run : overdue) Forget(run);
  return overdue;
}

}  // namespace hidane::sim
