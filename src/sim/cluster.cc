#include "sim/cluster.h"

namespace hidane::sim {

Cluster::Cluster(std::span<const EngineOptions> engines, Agenda& agenda) : agenda_(agenda) {
  for (const EngineOptions& options : engines) workers_.emplace_back(options);
}

// The step begins by an event of its own, so that all that arrives in one instant is in it.
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
  return w.engine.Restart();
}

void Cluster::Start(uint32_t worker, TimePoint now) {
  workers_[worker].up = true;
  workers_[worker].started = now;
}

void Cluster::BeginStep(uint32_t worker, TimePoint now) {
  Worker& w = workers_[worker];
  w.begins = false;
  if (!w.up || w.engine.stepping()) return;
  if (const auto takes = w.engine.BeginStep()) {
    ++steps_;
    agenda_.Push(now + *takes, {.kind = Event::Kind::kStepEnd, .who = worker, .id = w.life});
  }
}

std::span<const StepEvent> Cluster::EndStep(uint32_t worker, uint64_t life) {
  Worker& w = workers_[worker];
  if (!w.up || w.life != life) return {};
  return w.engine.EndStep();
}

}  // namespace hidane::sim
