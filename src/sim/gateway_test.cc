#include "sim/gateway.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "sim/prompt_chain.h"

namespace hidane::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Engines that take everything but where they are said to be dead.
class FakeWorld final : public World {
 public:
  Sent Send(const Request& request, WorkerId worker, TimePoint) override {
    if (dead.contains(worker.value())) return Sent::kUnreachable;
    if (rejects) return Sent::kRejected;
    sent.push_back(request.id);
    to.push_back(worker.value());
    return Sent::kTaken;
  }
  void Cancel(uint64_t id, WorkerId) override { cancelled.push_back(id); }
  void WakeAt(TimePoint at, uint64_t) override { wake_at = at; }
  uint64_t NewRefreshId(uint32_t replica) override { return 1'000 + replica; }
  void OnFirstByte(uint64_t id, TimePoint) override { answered.push_back(id); }
  void OnEnd(const Ending& ending, TimePoint) override {
    (ending.ok ? finished : failed).push_back(ending.id);
  }

  std::set<uint32_t> dead;
  bool rejects = false;
  std::vector<uint64_t> sent, cancelled, answered, finished, failed;
  std::vector<uint32_t> to;
  TimePoint wake_at{};
};

class SimGateway : public testing::Test {
 protected:
  SimGateway() { Use({}); }
  void Use(const Gateway::Options& options) {
    gateway_ = *Gateway::Make(options, world_);
    for (uint32_t w = 0; w < 4; ++w) {
      gateway_.router().PutWorker({.id = WorkerId(w), .name = std::to_string(w), .model = {}}, {});
    }
  }
  void Arrive(uint64_t id, TimePoint now = {}) {
    Request& request = requests_[id];
    request.id = id;
    request.prompt.root = 1;
    AppendTokens(7, 20'000, request.prompt);
    request.prompt.k1_end = static_cast<uint32_t>(request.prompt.size());
    AppendTokens(1'000 + id, 500, request.prompt);
    request.prompt.k2_end = static_cast<uint32_t>(request.prompt.size());
    gateway_.Arrive(request, now);
  }

  FakeWorld world_;
  std::map<uint64_t, Request> requests_;
  Gateway gateway_ = *Gateway::Make({}, world_);
};

TEST_F(SimGateway, FollowersOfAColdPrefixWaitForItsFirstByte) {
  for (uint64_t id = 1; id <= 3; ++id) Arrive(id);
  EXPECT_THAT(world_.sent, ElementsAre(1));
  gateway_.FirstToken(1, FromSeconds(0.5));
  EXPECT_THAT(world_.sent, ElementsAre(1, 2, 3));
  EXPECT_THAT(world_.answered, ElementsAre(1));
}

TEST_F(SimGateway, AFollowerWaitsNoLongerThanPromised) {
  Arrive(1);
  Arrive(2);
  const TimePoint promised = world_.wake_at;
  gateway_.Wake(2, promised - Duration(1));
  EXPECT_THAT(world_.sent, ElementsAre(1));
  gateway_.Wake(2, promised);
  EXPECT_THAT(world_.sent, ElementsAre(1, 2));
  gateway_.FirstToken(1, promised + Duration(1));
  EXPECT_THAT(world_.sent, ElementsAre(1, 2));
}

// Its engine is full, and other prompts come: a request without a client goes to the prefix's home,
// once, and its end is told to nobody.
TEST_F(SimGateway, APrefixAtHomeIsRefreshedBeforeItsCacheForgetsIt) {
  Gateway::Options options;
  options.params.keep_warm = true;
  options.params.kv_capacity_tokens = 24'000;
  Use(options);
  Arrive(1);
  const uint32_t home = world_.to.front();
  gateway_.FirstToken(1, FromSeconds(1));
  gateway_.Finish(1, 0, FromSeconds(1));
  gateway_.Tick(FromSeconds(2));
  EXPECT_THAT(world_.sent, ElementsAre(1)) << "there is room";
  for (uint64_t id = 2; id <= 9; ++id) {
    const TimePoint now = FromSeconds(2 + 0.1 * static_cast<double>(id));
    Arrive(id, now);
    gateway_.FirstToken(id, now);
    gateway_.Finish(id, 20'000, now);
  }
  const size_t before = world_.sent.size();
  gateway_.Tick(FromSeconds(4));
  ASSERT_THAT(world_.sent, testing::SizeIs(before + 1));
  EXPECT_EQ(world_.to.back(), home);
  EXPECT_EQ(gateway_.refreshes(), 1u);
  gateway_.FirstToken(1'000, FromSeconds(4));
  gateway_.Finish(1'000, 19'968, FromSeconds(4));
  EXPECT_THAT(world_.finished, testing::Not(testing::Contains(1'000)));
  gateway_.Tick(FromSeconds(4.1));
  EXPECT_EQ(gateway_.refreshes(), 1u);
}

TEST_F(SimGateway, AnUnreachableWorkerIsLeftOnceForAnother) {
  Arrive(1);
  const uint32_t home = world_.to.front();
  gateway_.FirstToken(1, FromSeconds(1));
  world_.dead = {home};
  Arrive(2, FromSeconds(2));
  EXPECT_THAT(world_.sent, ElementsAre(1, 2));
  EXPECT_NE(world_.to.back(), home);
  EXPECT_EQ(gateway_.failovers(), 1u);
  EXPECT_THAT(world_.failed, IsEmpty());
}

TEST_F(SimGateway, ASecondUnreachableWorkerIsTheClientsError) {
  world_.dead = {0, 1, 2, 3};
  Arrive(1);
  EXPECT_THAT(world_.failed, ElementsAre(1));
  EXPECT_EQ(gateway_.failovers(), 1u);
}

TEST_F(SimGateway, AResetIsRetriedElsewhereOnlyBeforeTheFirstByte) {
  Arrive(1);
  gateway_.Reset(1, FromSeconds(0.1));
  EXPECT_THAT(world_.sent, ElementsAre(1, 1));
  EXPECT_NE(world_.to[0], world_.to[1]);
  gateway_.FirstToken(1, FromSeconds(1));
  gateway_.Reset(1, FromSeconds(1.1));
  EXPECT_THAT(world_.failed, ElementsAre(1));
  EXPECT_EQ(world_.sent.size(), 2u);
}

TEST_F(SimGateway, AClientThatGivesUpFreesItsFollowers) {
  for (uint64_t id = 1; id <= 3; ++id) Arrive(id);
  EXPECT_TRUE(gateway_.GiveUp(1, FromSeconds(5)));
  EXPECT_THAT(world_.cancelled, ElementsAre(1));
  EXPECT_THAT(world_.failed, ElementsAre(1));
  EXPECT_THAT(world_.sent, ElementsAre(1, 2));  // the first follower leads now
  gateway_.FirstToken(2, FromSeconds(6));
  EXPECT_FALSE(gateway_.GiveUp(2, FromSeconds(6)));
  EXPECT_THAT(world_.sent, ElementsAre(1, 2, 3));
}

TEST_F(SimGateway, ARejectedRequestEndsAndHoldsNobodyBack) {
  world_.rejects = true;
  Arrive(1);
  EXPECT_THAT(world_.failed, ElementsAre(1));
  world_.rejects = false;
  Arrive(2);
  EXPECT_THAT(world_.sent, ElementsAre(2));
}

TEST_F(SimGateway, FinishTellsTheRouterWhatWasCached) {
  Arrive(1);
  gateway_.FirstToken(1, FromSeconds(1));
  gateway_.Finish(1, 0, FromSeconds(2));
  EXPECT_THAT(world_.finished, ElementsAre(1));
  EXPECT_TRUE(gateway_.router().Workers(FromSeconds(2))[world_.to[0]].feedback);
  EXPECT_EQ(gateway_.router().Workers(FromSeconds(2))[world_.to[0]].in_flight, 0u);
}

/// Gateways at which a run may outlive its client.
class SimGatewayRetries : public SimGateway {
 protected:
  SimGatewayRetries() { Use({.on_leave = OnLeave::kAttach}); }
  void Retry(uint64_t id, uint64_t of, TimePoint now) {
    Request& retry = requests_[id];
    retry = requests_[of];
    retry.id = id;
    ++retry.attempt;
    gateway_.Arrive(retry, now);
  }
};

TEST_F(SimGatewayRetries, ARetryTakesItsRunOver) {
  Arrive(1);
  EXPECT_TRUE(gateway_.GiveUp(1, FromSeconds(5)));
  EXPECT_THAT(world_.failed, ElementsAre(1));
  EXPECT_THAT(world_.cancelled, IsEmpty());
  Retry(2, 1, FromSeconds(5.5));
  EXPECT_THAT(world_.sent, ElementsAre(1));
  gateway_.FirstToken(1, FromSeconds(6));
  gateway_.Finish(1, 0, FromSeconds(7));
  EXPECT_THAT(world_.answered, ElementsAre(2));
  EXPECT_THAT(world_.finished, ElementsAre(2));
  EXPECT_EQ(gateway_.adopted(), 1u);
}

TEST_F(SimGatewayRetries, ARetryGetsAnAnswerThatCameMeanwhile) {
  Arrive(1);
  gateway_.GiveUp(1, FromSeconds(5));
  gateway_.FirstToken(1, FromSeconds(5.1));
  gateway_.Finish(1, 0, FromSeconds(5.2));
  EXPECT_THAT(world_.finished, IsEmpty());
  Retry(2, 1, FromSeconds(5.5));
  EXPECT_THAT(world_.answered, ElementsAre(2));
  EXPECT_THAT(world_.finished, ElementsAre(2));
  EXPECT_THAT(world_.sent, ElementsAre(1));
}

TEST_F(SimGatewayRetries, NobodyElseGetsARun) {
  Arrive(1);
  Arrive(2);
  gateway_.GiveUp(1, FromSeconds(5));
  Retry(3, 2, FromSeconds(5.1));
  EXPECT_EQ(gateway_.adopted(), 0u) << "another prompt, whose client is still there";
}

TEST_F(SimGatewayRetries, ARunThatNobodyComesForIsCancelled) {
  Arrive(1);
  gateway_.GiveUp(1, FromSeconds(5));
  gateway_.Tick(FromSeconds(6));
  EXPECT_THAT(world_.cancelled, IsEmpty());
  gateway_.Tick(FromSeconds(7));
  EXPECT_THAT(world_.cancelled, ElementsAre(1));
  Retry(2, 1, FromSeconds(8));
  EXPECT_THAT(world_.sent, ElementsAre(1, 2));
}

TEST_F(SimGatewayRetries, TheRetryMayLeaveToo) {
  Arrive(1);
  gateway_.GiveUp(1, FromSeconds(5));
  Retry(2, 1, FromSeconds(5.5));
  EXPECT_TRUE(gateway_.GiveUp(2, FromSeconds(10)));
  Retry(3, 2, FromSeconds(11));
  gateway_.FirstToken(1, FromSeconds(12));
  EXPECT_THAT(world_.answered, ElementsAre(3));
  EXPECT_THAT(world_.failed, ElementsAre(1, 2));
}

TEST_F(SimGateway, WithoutAnAbortTheEngineComputesForNobody) {
  Use({.on_leave = OnLeave::kRunOn});
  Arrive(1);
  EXPECT_TRUE(gateway_.GiveUp(1, FromSeconds(5)));
  EXPECT_THAT(world_.cancelled, IsEmpty());
  gateway_.FirstToken(1, FromSeconds(6));
  gateway_.Finish(1, 0, FromSeconds(7));
  EXPECT_THAT(world_.answered, IsEmpty());
}

TEST(SimGatewayMake, NamesAnUnknownPolicy) {
  FakeWorld world;
  Gateway::Options options;
  options.policy = "best";
  const auto gateway = Gateway::Make(options, world);
  ASSERT_FALSE(gateway);
  EXPECT_EQ(gateway.error().param, "policy");
}

}  // namespace
}  // namespace hidane::sim
