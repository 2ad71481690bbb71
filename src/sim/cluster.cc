#include "sim/cluster.h"

#include <algorithm>

namespace hidane::sim {

Cluster::Cluster(std::span<const EngineOptions> engines, uint32_t cores, Agenda& agenda)
    : cores_(cores), agenda_(agenda) {
  for (const EngineOptions& options : engines) workers_.emplace_back(options);
}

// The step begins by an event of its own, so that all that arrives in one instant is in it.
uint64_t Cluster::kv_capacity_tokens() const {
  uint64_t tokens = 0;
  for (const Worker& worker : workers_) tokens += worker.engine.kv_capacity_tokens();
  return tokens;
}

Sent Cluster::Submit(const Request& request, uint32_t worker, TimePoint now) {
  Worker& w = workers_[worker];
  if (!w.up) return Sent::kUnreachable;
  if (!w.engine.Submit(request)) return Sent::kRejected;
  if (!w.engine.stepping() && !w.begins) {
    w.begins = true;
    agenda_.Push(now, {.kind = Event::Kind::kStepBegin, .who = worker});
  }
  return Sent::kTaken;
}

void Cluster::Cancel(uint64_t id, uint32_t worker) {
  workers_[worker].engine.Cancel(id);
}

std::vector<uint64_t> Cluster::Stop(uint32_t worker) {
  Worker& w = workers_[worker];
  w.up = false;
  ++w.life;
  shares_changed_ = true;
  return w.engine.Restart();
}

void Cluster::Start(uint32_t worker, TimePoint now) {
  workers_[worker].up = true;
  workers_[worker].started = now;
}

void Cluster::BeginStep(uint32_t worker, TimePoint now) {
  Worker& w = workers_[worker];
  w.begins = false;
  const auto takes = w.up && !w.engine.stepping() ? w.engine.BeginStep() : std::nullopt;
  if (takes) ++steps_;
  if (cores_ > 0) {
    if (takes || shares_changed_) Share(worker, takes, now);
  } else if (takes) {
    agenda_.Push(now + *takes, {.kind = Event::Kind::kStepEnd, .who = worker, .id = w.life});
  }
}

void Cluster::Share(uint32_t worker, std::optional<Duration> takes, TimePoint now) {
  Settle(now);
  if (takes) workers_[worker].left = *takes;
  PlanEnds(now);
  shares_changed_ = false;
}

// Takes off what was computed since the last change.
void Cluster::Settle(TimePoint now) {
  Duration done = now - settled_;
  if (computing_ > cores_) done = done * cores_ / computing_;
  for (Worker& w : workers_) w.left = std::max(w.left - done, Duration{});
  settled_ = now;
}

void Cluster::PlanEnds(TimePoint now) {
  computing_ = static_cast<uint32_t>(
      std::ranges::count_if(workers_, [](const Worker& w) { return w.engine.stepping(); }));
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    Worker& w = workers_[i];
    if (!w.engine.stepping()) continue;
    const Duration takes = computing_ > cores_ ? w.left * computing_ / cores_ : w.left;
    agenda_.Push(now + takes, {.kind = Event::Kind::kStepEnd, .who = i, .id = ++w.life});
  }
}

std::span<const StepEvent> Cluster::EndStep(uint32_t worker, uint64_t life) {
  Worker& w = workers_[worker];
  if (!w.up || w.life != life) return {};
  shares_changed_ = true;
  return w.engine.EndStep();
}

}  // namespace hidane::sim
