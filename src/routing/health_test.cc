#include "routing/health.h"

#include <gtest/gtest.h>

#include "routing/failover.h"
#include "routing/routing_test_util.h"

namespace hidane::routing {
namespace {

TEST(HealthTest, ARefusedConnectionEjectsAtOnceAndOneRealRequestBringsItBack) {
  Health h;
  EXPECT_TRUE(h.OnFault(Fault::kConnect, 1, true, At(0)));
  EXPECT_EQ(h.state(At(4)), HealthState::kEjected);
  EXPECT_FALSE(h.MayTake(At(4)));
  EXPECT_EQ(h.state(At(5)), HealthState::kHalfOpen);
  EXPECT_TRUE(h.MayTake(At(5)));
  h.OnDispatch(At(5));
  EXPECT_FALSE(h.MayTake(At(5))) << "one request decides, not many";
  h.OnSuccess(At(6));
  EXPECT_EQ(h.state(At(6)), HealthState::kUp);
}

TEST(HealthTest, EjectionsDoubleUntilASuccess) {
  Health h;
  h.OnFault(Fault::kConnect, 1, true, At(0));
  h.OnDispatch(At(5));
  EXPECT_TRUE(h.OnFault(Fault::kReset, 2, false, At(5))) << "the trial failed";
  EXPECT_EQ(h.state(At(14)), HealthState::kEjected);
  EXPECT_EQ(h.state(At(15)), HealthState::kHalfOpen);
  h.OnSuccess(At(15));
  h.OnFault(Fault::kConnect, 1, true, At(20));
  EXPECT_EQ(h.state(At(25)), HealthState::kHalfOpen) << "five seconds again";
}

TEST(HealthTest, AnAbandonedTrialIsGivenBack) {
  Health h;
  h.OnFault(Fault::kConnect, 1, true, At(0));
  h.OnDispatch(At(5));
  h.OnAbandoned();
  EXPECT_TRUE(h.MayTake(At(5)));
}

TEST(HealthTest, OnePoisonPromptIsNotASickWorker) {
  Health h;
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(h.OnFault(Fault::k5xx, 7, true, At(i * 0.1)));
  EXPECT_FALSE(h.OnFault(Fault::k5xx, 8, true, At(2)));
  EXPECT_TRUE(h.OnFault(Fault::k5xx, 9, true, At(2))) << "three distinct prompts are";
}

TEST(HealthTest, FaultsWithSuccessesBetweenOrLongAgoDontAddUp) {
  Health h;
  h.OnFault(Fault::k5xx, 1, true, At(0));
  h.OnFault(Fault::k5xx, 2, true, At(0));
  h.OnSuccess(At(1));
  EXPECT_FALSE(h.OnFault(Fault::k5xx, 3, true, At(1)));
  EXPECT_FALSE(h.OnFault(Fault::k5xx, 4, true, At(20)));
  EXPECT_FALSE(h.OnFault(Fault::k5xx, 5, true, At(40)));
}

TEST(HealthTest, TheFleetGivesOnlySoManyEjections) {
  const HealthParams params;
  EXPECT_FALSE(MayEject(params, 1, 0));
  EXPECT_TRUE(MayEject(params, 4, 1));
  EXPECT_FALSE(MayEject(params, 4, 2));
  Health h;
  EXPECT_FALSE(h.OnFault(Fault::kSilence, 1, false, At(0)));
  EXPECT_EQ(h.state(At(0)), HealthState::kUp);
}

TEST(HealthTest, PolitenessIsNoProgress) {
  Health h;
  h.OnFault(Fault::kSilence, 1, true, At(0));
  h.OnProbe(true, At(1));
  EXPECT_EQ(h.state(At(1)), HealthState::kEjected) << "its /health says 200, it serves nobody";
}

TEST(HealthTest, ADownWorkerComesBackByProbeThenByOneRequest) {
  Health h;
  h.OnProbe(false, At(0));
  EXPECT_EQ(h.state(At(0)), HealthState::kUp) << "one lost probe is noise";
  h.OnProbe(false, At(1));
  EXPECT_EQ(h.state(At(1)), HealthState::kDown);
  h.OnProbe(true, At(2));
  EXPECT_EQ(h.state(At(2)), HealthState::kHalfOpen);
  h.OnDispatch(At(2));
  h.OnSuccess(At(3));
  EXPECT_EQ(h.state(At(3)), HealthState::kUp);
}

TEST(FailoverTest, OncePerFingerprintAndOnlyBeforeTheFirstByte) {
  Failover f;
  const Attempt refused{.outcome = Outcome::kConnectError};
  EXPECT_TRUE(f.Allow(refused, 1, At(0)));
  EXPECT_FALSE(f.Allow(refused, 1, At(1))) << "a poison prompt meets two engines at most";
  EXPECT_TRUE(f.Allow(refused, 2, At(1)));
  EXPECT_TRUE(f.Allow(refused, 1, At(200)));
  EXPECT_FALSE(f.Allow({.outcome = Outcome::kConnectError, .number = 2}, 3, At(0)));
  EXPECT_FALSE(f.Allow({.outcome = Outcome::kClosedEarly, .byte_sent = true}, 3, At(0)));
  EXPECT_FALSE(f.Allow({.outcome = Outcome::kClosedEarly, .byte_received = true}, 3, At(0)));
  EXPECT_FALSE(f.Allow({.outcome = Outcome::kClosedEarly, .body_kept = false}, 3, At(0)));
  EXPECT_TRUE(f.Allow({.outcome = Outcome::kClosedEarly}, 3, At(0)));
}

TEST(FailoverTest, NeverOnTimeoutsAndSlowOrOtherAnswers) {
  Failover f;
  EXPECT_FALSE(f.Allow({.outcome = Outcome::kOther}, 1, At(0)));
  EXPECT_FALSE(f.Allow({.outcome = Outcome::kBadGateway, .elapsed_s = 3}, 1, At(0)));
  EXPECT_TRUE(f.Allow({.outcome = Outcome::kBadGateway, .elapsed_s = 0.1}, 1, At(0)));
}

TEST(FailoverTest, ForgetsTheOldestFingerprintFirst) {
  Failover f({.fingerprints_max = 2});
  const Attempt refused{.outcome = Outcome::kConnectError};
  for (const uint64_t fp : {1, 2, 3}) EXPECT_TRUE(f.Allow(refused, fp, At(0)));
  EXPECT_FALSE(f.Allow(refused, 3, At(0)));
  EXPECT_TRUE(f.Allow(refused, 1, At(0)));
}

}  // namespace
}  // namespace hidane::routing
