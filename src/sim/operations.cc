#include "sim/operations.h"

#include <algorithm>

namespace hidane::sim {

std::optional<TimePoint> FleetPlan::first_change() const {
  std::optional<TimePoint> first;
  if (upgrade) first = upgrade->at;
  for (const Loss& loss : losses) first = std::min(first.value_or(loss.at), loss.at);
  return first;
}

void Operations::Second(TimePoint now, FleetControl& fleet) {
  if (plan_.churn) PlanChurn(now, fleet.workers());
  Lose(now, fleet);
  if (plan_.upgrade && now >= plan_.upgrade->at) Upgrade(now, fleet);
}

bool Operations::done(uint32_t workers) const {
  return !plan_.churn && plan_.losses.empty() && down_.empty() &&
         (!plan_.upgrade || upgrading_ >= workers);
}

void Operations::PlanChurn(TimePoint now, uint32_t workers) {
  if (now < plan_.churn->every * (churned_ + 1)) return;
  plan_.losses.push_back({.worker = churned_ % workers, .at = now, .down = plan_.churn->down});
  ++churned_;
}

void Operations::Lose(TimePoint now, FleetControl& fleet) {
  for (const FleetPlan::Loss& loss : down_) {
    if (now >= loss.at + loss.down) fleet.Start(WorkerId(loss.worker), now);
  }
  std::erase_if(down_, [now](const auto& loss) { return now >= loss.at + loss.down; });
  for (const FleetPlan::Loss& loss : plan_.losses) {
    if (now < loss.at) continue;
    fleet.Stop(WorkerId(loss.worker), now);
    down_.push_back(loss);
  }
  std::erase_if(plan_.losses, [now](const auto& loss) { return now >= loss.at; });
}

// Load balancers hear of a drain before the process is asked to stop, so idle counts from the
// second after.
void Operations::Upgrade(TimePoint now, FleetControl& fleet) {
  if (upgrading_ >= fleet.workers()) return;
  const WorkerId worker(upgrading_);
  switch (stage_) {
    case Stage::kNext:
      fleet.Drain(worker, true, now);
      stage_ = Stage::kDraining;
      since_ = now;
      return;
    case Stage::kDraining:
      if (!fleet.Idle(worker) && now - since_ < plan_.upgrade->drain_max) return;
      fleet.Stop(worker, now);
      stage_ = Stage::kDown;
      since_ = now;
      return;
    case Stage::kDown:
      if (now - since_ < plan_.upgrade->down) return;
      fleet.Start(worker, now);
      fleet.Drain(worker, false, now);
      stage_ = Stage::kNext;
      ++upgrading_;
  }
}

}  // namespace hidane::sim
