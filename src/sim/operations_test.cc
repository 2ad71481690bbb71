#include "sim/operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hidane::sim {
namespace {

using testing::ElementsAre;

/// Writes down what is done to it; workers are busy for two seconds after their drain began.
class FakeFleet final : public FleetControl {
 public:
  void Drain(WorkerId worker, bool draining, TimePoint now) override {
    if (draining) drained_ = now;
    Write(draining ? "drain" : "undrain", worker, now);
  }
  void Stop(WorkerId worker, TimePoint now) override { Write("stop", worker, now); }
  void Start(WorkerId worker, TimePoint now) override { Write("start", worker, now); }
  bool Idle(WorkerId) const override { return !busy_for_ever && now_ >= drained_ + kBusy; }
  uint32_t workers() const override { return 2; }

  std::vector<std::string> Play(Operations operations, int seconds) {
    for (int s = 0; s <= seconds; ++s) {
      now_ = std::chrono::seconds(s);
      operations.Second(now_, *this);
    }
    done = operations.done(workers());
    return log_;
  }
  bool busy_for_ever = false;
  bool done = false;

 private:
  static constexpr Duration kBusy = std::chrono::seconds(2);
  void Write(const char* what, WorkerId worker, TimePoint now) {
    const auto at = std::chrono::duration_cast<std::chrono::seconds>(now).count();
    log_.push_back(std::to_string(at) + " " + what + " " + std::to_string(worker.value()));
  }
  std::vector<std::string> log_;
  TimePoint now_{}, drained_{};
};

TEST(Operations, ALossIsBackWhenItsTimeIsOver) {
  FleetPlan plan;
  plan.losses = {{.worker = 1, .at = std::chrono::seconds(3), .down = std::chrono::seconds(4)}};
  FakeFleet fleet;
  EXPECT_THAT(fleet.Play(Operations(plan), 20), ElementsAre("3 stop 1", "7 start 1"));
  EXPECT_TRUE(fleet.done);
}

TEST(Operations, AnUpgradeDrainsStopsAndReturnsOneAfterTheOther) {
  FleetPlan plan;
  plan.upgrade = {.at = std::chrono::seconds(1),
                  .down = std::chrono::seconds(3),
                  .drain_max = std::chrono::seconds(60)};
  FakeFleet fleet;
  EXPECT_THAT(fleet.Play(Operations(plan), 20),
              ElementsAre("1 drain 0", "3 stop 0", "6 start 0", "6 undrain 0",  //
                          "7 drain 1", "9 stop 1", "12 start 1", "12 undrain 1"));
  EXPECT_TRUE(fleet.done);
}

TEST(Operations, AWorkerThatNeverGetsIdleIsStoppedAllTheSame) {
  FleetPlan plan;
  plan.upgrade = {.at = {}, .down = std::chrono::seconds(3), .drain_max = std::chrono::seconds(5)};
  FakeFleet fleet;
  fleet.busy_for_ever = true;
  EXPECT_THAT(fleet.Play(Operations(plan), 6), ElementsAre("0 drain 0", "5 stop 0"));
  EXPECT_FALSE(fleet.done);
}

TEST(Operations, ChurnTakesOneWorkerAfterTheOther) {
  FleetPlan plan;
  plan.churn = {.every = std::chrono::seconds(5), .down = std::chrono::seconds(2)};
  FakeFleet fleet;
  EXPECT_THAT(fleet.Play(Operations(plan), 16),
              ElementsAre("5 stop 0", "7 start 0", "10 stop 1", "12 start 1", "15 stop 0"));
  EXPECT_FALSE(fleet.done);
  EXPECT_EQ(plan.first_change(), std::nullopt);
}

TEST(FleetPlan, KnowsWhenItsFirstChangeIs) {
  FleetPlan plan;
  EXPECT_EQ(plan.first_change(), std::nullopt);
  plan.losses = {{.worker = 0, .at = TimePoint(9), .down = {}},
                 {.worker = 1, .at = TimePoint(4), .down = {}}};
  EXPECT_EQ(plan.first_change(), TimePoint(4));
  plan.upgrade = {.at = TimePoint(2), .down = {}, .drain_max = {}};
  EXPECT_EQ(plan.first_change(), TimePoint(2));
}

}  // namespace
}  // namespace hidane::sim
