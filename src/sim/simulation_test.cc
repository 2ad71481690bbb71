#include "sim/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "sim/prompt_chain.h"
#include "sim/tenant_loop.h"

namespace hidane::sim {
namespace {

using testing::DoubleNear;

/// Sends what it is told to; remembers how each ended.
class Script final : public Workload {
 public:
  explicit Script(std::vector<Request> requests) : requests_(std::move(requests)) {}
  std::string_view name() const override { return "script"; }
  std::optional<Request> Next() override {
    if (next_ == requests_.size()) return std::nullopt;
    return requests_[next_++];
  }
  std::optional<Request> After(const Finished& done, TimePoint now) override {
    ended.push_back({done.ok, now});
    return std::nullopt;
  }
  struct End {
    bool ok;
    TimePoint at;
  };
  std::vector<End> ended;

 private:
  std::vector<Request> requests_;
  size_t next_ = 0;
};

Request Ask(double at_s, uint64_t tenant, uint64_t own) {
  Request request;
  request.arrival = FromSeconds(at_s);
  AppendTokens(tenant * 1'000'000, 8'192, request.prompt);
  request.prompt.k1_end = static_cast<uint32_t>(request.prompt.size());
  AppendTokens(own * 1'000, 1'024, request.prompt);
  request.output_tokens = 11;
  return request;
}

sim::Setup Fleet(uint32_t replicas) {
  sim::Setup setup;
  setup.engines.assign(replicas, {.gpu = *FindGpuSetup("8b-bf16-h100")});
  setup.policy = "round_robin";
  return setup;
}

TenantLoopOptions SmallLoop() {
  return {.tenants = 6, .concurrency = 10, .requests = 120, .uncounted = 20};
}

TEST(Simulation, ARequestTakesWhatTheStepModelSays) {
  const sim::Setup setup = Fleet(1);
  Script script({Ask(0, 1, 1), Ask(10, 1, 2)});
  const sim::Run run = *Simulate(setup, script);
  const StepModel model(setup.engines[0].gpu);
  const StepShape::Chunk first{8'192, 0}, rest{1'024, 8'192};
  const double cold = model.PrefillSeconds({&first, 1}) + model.PrefillSeconds({&rest, 1});
  const double warm = model.PrefillSeconds({&rest, 1});
  EXPECT_THAT(run.row.ttft_p99_s, DoubleNear(cold, 1e-6));
  EXPECT_THAT(run.row.ttft_p50_s, DoubleNear(warm, 1e-6));
  EXPECT_DOUBLE_EQ(run.row.hit_ratio, 8'192.0 / (2 * 9'216));
  EXPECT_DOUBLE_EQ(run.row.hit_ratio_bound, 8'192.0 / (2 * 9'216));
  EXPECT_EQ(run.row.requests, 2);
  EXPECT_EQ(run.row.errors, 0);
  EXPECT_EQ(run.row.mean_homes, 1);
  EXPECT_EQ(run.row.load_imbalance, 1);
  EXPECT_EQ(run.row.recompute_share, 0);
}

TEST(Simulation, AllThatArriveInOneInstantAreSeenByOneStep) {
  Script script({Ask(0, 1, 1), Ask(0, 2, 2), Ask(0, 3, 3)});
  sim::Setup setup = Fleet(1);
  setup.engines[0].max_num_batched_tokens = 100'000;
  const sim::Run run = *Simulate(setup, script);
  EXPECT_DOUBLE_EQ(run.row.ttft_p50_s, run.row.ttft_p99_s);
}

TEST(Simulation, EveryRequestOfAClosedLoopEnds) {
  TenantLoop loop(SmallLoop());
  const sim::Run run = *Simulate(Fleet(3), loop);
  EXPECT_EQ(run.row.requests, 100);
  EXPECT_EQ(run.row.errors, 0);
  EXPECT_GT(run.row.requests_per_s, 0);
  EXPECT_EQ(run.decisions, 120u);
}

TEST(Simulation, RequestsOfALostReplicaAreServedElsewhere) {
  TenantLoop loop(SmallLoop());
  sim::Setup setup = Fleet(3);
  setup.plan.losses.push_back({.worker = 1, .at = FromSeconds(5), .down = FromSeconds(5)});
  const sim::Run run = *Simulate(setup, loop);
  EXPECT_GT(run.failovers, 0u);
  EXPECT_GE(run.row.requests, 100);
  EXPECT_EQ(run.row.requests - run.row.errors, 100);
}

TEST(Simulation, ARollingUpgradeLosesNothing) {
  TenantLoopOptions options = SmallLoop();
  options.requests = 1'000'000;
  options.until = FromSeconds(80);
  TenantLoop loop(options);
  sim::Setup setup = Fleet(3);
  setup.plan.upgrade = {
      .at = FromSeconds(10), .down = FromSeconds(3), .drain_max = FromSeconds(60)};
  const sim::Run run = *Simulate(setup, loop);
  EXPECT_EQ(run.row.errors, 0);
  EXPECT_EQ(run.failovers, 0u);
}

// Where memory just suffices; where it is plenty the rendezvous order alone would do.
TEST(Simulation, GatewaysThatShareDeltasAgreeOnHomes) {
  std::map<Deltas, double> homes, hits;
  for (const Deltas deltas : {Deltas::kOn, Deltas::kLate, Deltas::kOff}) {
    TenantLoop loop({.tenants = 50, .concurrency = 50, .requests = 600, .uncounted = 200});
    sim::Setup setup = Fleet(4);
    setup.policy = "prefix";
    setup.gateways = 4;
    setup.deltas = deltas;
    const sim::Run run = *Simulate(setup, loop);
    homes[deltas] = run.row.mean_homes;
    hits[deltas] = run.row.hit_ratio;
  }
  EXPECT_LT(homes[Deltas::kOn], 1.5);
  EXPECT_LT(homes[Deltas::kLate], 1.5);
  EXPECT_GT(homes[Deltas::kOff], homes[Deltas::kOn] + 0.2);
  EXPECT_GT(hits[Deltas::kOn], hits[Deltas::kOff] + 0.05);
}

TEST(Simulation, AColdBurstAtSeveralGatewaysComputesEachPrefixOnce) {
  double hits[2];
  for (const uint32_t gateways : {1u, 4u}) {
    TenantLoop loop({.tenants = 30, .requests = 0, .burst = 60});
    sim::Setup setup = Fleet(8);
    setup.policy = "prefix";
    setup.gateways = gateways;
    const sim::Run run = *Simulate(setup, loop);
    EXPECT_EQ(run.row.mean_homes, 1);
    hits[gateways > 1] = run.row.hit_ratio;
  }
  EXPECT_NEAR(hits[1], hits[0], 0.01);
}

TEST(Simulation, AnImpatientClientLeavesBeforeItsFirstByte) {
  std::vector<Request> requests = {Ask(0, 1, 1), Ask(0, 2, 2)};
  for (Request& request : requests) request.patience = FromSeconds(0.6);
  Script script(requests);
  const sim::Run run = *Simulate(Fleet(1), script);
  ASSERT_EQ(script.ended.size(), 2u);
  EXPECT_FALSE(script.ended[0].ok);  // the other's prefill was before its own
  EXPECT_EQ(script.ended[0].at, FromSeconds(0.6));
  EXPECT_TRUE(script.ended[1].ok);  // its first byte came in time, the rest may take longer
  EXPECT_GT(script.ended[1].at, FromSeconds(0.6));
  EXPECT_EQ(run.row.errors, 1);
}

TEST(Simulation, EndsWhenItIsToldTo) {
  TenantLoop loop(SmallLoop());
  sim::Setup setup = Fleet(1);
  setup.until = FromSeconds(3);
  EXPECT_LE(Simulate(setup, loop)->ended, FromSeconds(3));

  TenantLoop other(SmallLoop());
  setup = Fleet(1);
  setup.on_second = [](TimePoint now, uint64_t) { return now < FromSeconds(2); };
  EXPECT_EQ(Simulate(setup, other)->ended, FromSeconds(2));
}

TEST(Simulation, TheSeriesAddsUpToTheRun) {
  TenantLoop loop(SmallLoop());
  sim::Setup setup = Fleet(2);
  setup.policy = "prefix";
  setup.series_step = FromSeconds(1);
  const sim::Run run = *Simulate(setup, loop);
  uint32_t finished = 0;
  for (const Series::Point& point : run.series.points) finished += point.finished;
  EXPECT_EQ(finished, 120u);
  const Series::Point& late = run.series.points[run.series.points.size() / 2];
  ASSERT_EQ(late.kv_cached.size(), 2u);
  EXPECT_GT(late.kv_cached[0] + late.kv_cached[1], 0);
  EXPECT_GT(late.assigned[0] + late.assigned[1], 0);
  EXPECT_LE(late.kv_held[0], 1);
}

TEST(Simulation, NamesWhatIsWrongWithItsSetup) {
  Script script({});
  EXPECT_EQ(Simulate(Fleet(0), script).error().param, "replicas");
  sim::Setup setup = Fleet(1);
  setup.gateways = 0;
  EXPECT_EQ(Simulate(setup, script).error().param, "gateways");
  setup = Fleet(1);
  setup.policy = "best";
  EXPECT_EQ(Simulate(setup, script).error().param, "policy");
}

}  // namespace
}  // namespace hidane::sim
