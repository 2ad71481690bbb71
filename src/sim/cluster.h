#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "sim/agenda.h"
#include "sim/engine.h"
#include "sim/gateway.h"

namespace hidane::sim {

/// The workers: engines with the crank that turns them, and their lives: a worker that stops
/// loses all it had and comes back empty. Not thread-safe.
class Cluster {
 public:
  /// `cores` > 0: the engines are processes of one machine and share so many cores: while more of
  /// them compute than there are cores, all are slower in proportion. 0: each has its own GPUs.
  /// REQUIRES: `agenda` outlives it.
  Cluster(std::span<const EngineOptions> engines, uint32_t cores, Agenda& agenda);

  size_t size() const { return workers_.size(); }
  uint64_t kv_capacity_tokens() const;  ///< of all
  bool up(uint32_t worker) const { return workers_[worker].up; }
  uint64_t life(uint32_t worker) const { return workers_[worker].life; }  ///< one more each Stop
  /// Seconds of the process's start, as its metrics would say.
  double started_s(uint32_t worker) const { return Seconds(workers_[worker].started); }
  const Engine& engine(uint32_t worker) const { return workers_[worker].engine; }

  Sent Submit(const Request& request, uint32_t worker, TimePoint now);
  void Cancel(uint64_t id, uint32_t worker);

  /// The process ends: ids of the requests that it had.
  std::vector<uint64_t> Stop(uint32_t worker);
  void Start(uint32_t worker, TimePoint now);

  // Events of the agenda.
  void BeginStep(uint32_t worker, TimePoint now);
  /// What the step brought; empty when the worker stopped meanwhile. Valid until the next call;
  /// call BeginStep afterwards.
  std::span<const StepEvent> EndStep(uint32_t worker, uint64_t life);

  uint64_t steps() const { return steps_; }

 private:
  struct Worker {
    explicit Worker(const EngineOptions& options) : engine(options) {}
    Engine engine;
    bool up = true;
    bool begins = false;  // a kStepBegin is planned
    uint64_t life = 0;    // events of earlier ones are void
    Duration left{};      // of its step, had it a core for itself
    TimePoint started{};
  };

  void Share(uint32_t worker, std::optional<Duration> takes, TimePoint now);
  void Settle(TimePoint now);
  void PlanEnds(TimePoint now);

  std::deque<Worker> workers_;  // engines stay where they are
  uint32_t cores_;
  uint32_t computing_ = 0;  // engines, since:
  TimePoint settled_{};
  bool shares_changed_ = false;  // a step has ended since
  Agenda& agenda_;
  uint64_t steps_ = 0;
};

}  // namespace hidane::sim
