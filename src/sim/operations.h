#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace hidane::sim {

/// What is done to the fleet while it serves.
struct FleetPlan {
  struct Loss {
    uint32_t worker = 0;
    TimePoint at{};
    Duration down{};
  };
  std::vector<Loss> losses;
  /// One worker after the other, each lost for `down`, without end.
  struct Churn {
    Duration every{};
    Duration down{};
  };
  std::optional<Churn> churn;
  /// One worker after the other: drained, stopped when idle, back after `down`.
  struct Upgrade {
    TimePoint at{};
    Duration down{};
    Duration drain_max{};  ///< stopped after so long even if not idle
  };
  std::optional<Upgrade> upgrade;
  /// When the first change begins of those that end; nullopt: none.
  std::optional<TimePoint> first_change() const;
};

/// What operations act on.
class FleetControl {
 public:
  virtual void Drain(WorkerId worker, bool draining, TimePoint now) = 0;  ///< at every gateway
  virtual void Stop(WorkerId worker, TimePoint now) = 0;
  virtual void Start(WorkerId worker, TimePoint now) = 0;
  virtual bool Idle(WorkerId worker) const = 0;
  virtual uint32_t workers() const = 0;

 protected:
  ~FleetControl() = default;
};

/// Carries a plan out, second by second.
class Operations {
 public:
  explicit Operations(FleetPlan plan) : plan_(std::move(plan)) {}
  void Second(TimePoint now, FleetControl& fleet);
  bool done(uint32_t workers) const;

 private:
  enum class Stage : uint8_t { kNext, kDraining, kDown };
  void PlanChurn(TimePoint now, uint32_t workers);
  void Lose(TimePoint now, FleetControl& fleet);
  void Upgrade(TimePoint now, FleetControl& fleet);

  FleetPlan plan_;
  std::vector<FleetPlan::Loss> down_;  // lost and not yet back
  uint32_t churned_ = 0;               // losses by churn
  uint32_t upgrading_ = 0;             // the worker whose turn it is
  Stage stage_ = Stage::kNext;
  TimePoint since_{};
};

}  // namespace hidane::sim
