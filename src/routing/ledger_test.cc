#include "routing/ledger.h"

#include <gtest/gtest.h>

#include "routing/half_lives.h"
#include "routing/load_share.h"
#include "routing/routing_test_util.h"
#include "routing/single_flight.h"

namespace hidane::routing {
namespace {

TEST(LedgerTest, WaitIsTheUnansweredPrefillLessWhatIsUnderWay) {
  Ledger ledger;
  const Cost cost{.prefill_s = 2, .own_tokens = 10, .k1 = 1, .k1_tokens = 100};
  EXPECT_EQ(ledger.wait_s(At(0)), 0);
  ledger.Add(cost, At(0), 0);
  ledger.Add(cost, At(0), 0);
  EXPECT_DOUBLE_EQ(ledger.wait_s(At(0)), 4);
  EXPECT_DOUBLE_EQ(ledger.wait_s(At(1.5)), 2.5);
  EXPECT_DOUBLE_EQ(ledger.wait_s(At(9)), 2) << "one overdue request hides no other";
  ledger.Answered(cost, At(9));
  EXPECT_DOUBLE_EQ(ledger.wait_s(At(9)), 2);
  ledger.Answered(cost, At(10));
  EXPECT_EQ(ledger.wait_s(At(10)), 0);
  EXPECT_EQ(ledger.in_flight(), 2u);
}

TEST(LedgerTest, ASharedPrefixTakesMemoryOnce) {
  Ledger ledger;
  const Cost cost{.prefill_s = 1, .own_tokens = 10, .k1 = 1, .k1_tokens = 100};
  ledger.Add(cost, At(0), 0);
  ledger.Add(cost, At(0), 0);
  EXPECT_EQ(ledger.running_tokens(), 120u);
  ledger.Done(cost, false, 1, At(1));
  EXPECT_EQ(ledger.running_tokens(), 110u);
  EXPECT_TRUE(ledger.Runs(1));
  ledger.Done(cost, false, 1, At(1));
  EXPECT_EQ(ledger.running_tokens(), 0u);
  EXPECT_FALSE(ledger.Runs(1));
  EXPECT_EQ(ledger.wait_s(At(1)), 0);
}

TEST(RunningReserveTest, IsTheGivenShareUntilMeasuredThenAHighQuantile) {
  RunningReserve reserve;
  EXPECT_EQ(reserve.Tokens(100'000, 0.07), 7'000u);
  for (uint64_t i = 0; i < 4000; ++i) reserve.Observe(i * 7919 % 1000, 100'000);
  EXPECT_NEAR(static_cast<double>(reserve.Tokens(100'000, 0.07)), 950, 250);
}

TEST(LoadShareTest, SharesAreReadCautiously) {
  LoadShare load(120, 1500);
  LoadShare::Count hot;
  LoadShare::Count rest;
  for (int i = 0; i < 5; ++i) load.Add(i % 5 == 0 ? rest : hot, At(i));
  EXPECT_LT(load.LowerShare(hot), 0.5) << "five samples prove little";
  for (int i = 0; i < 2000; ++i) load.Add(i % 5 == 0 ? rest : hot, At(i));
  EXPECT_NEAR(load.LowerShare(hot), 0.8, 0.04);
}

TEST(LoadShareTest, OldLoadFadesWithRequestsNotWithSilence) {
  LoadShare load(120, 1500);
  LoadShare::Count a;
  LoadShare::Count b;
  for (int i = 0; i < 1000; ++i) load.Add(a, At(i));
  load.Add(b, At(1e6));
  EXPECT_GT(load.Share(a), 0.99) << "a night's pause is no reason to forget";
  for (int i = 0; i < 6000; ++i) load.Add(b, At(1e6 + i));
  EXPECT_LT(load.Share(a), 0.05);
}

constexpr WorkerId kW{3};

Flight Join(SingleFlight& flights, Ticket ticket, uint64_t k1, WorkerId worker, uint32_t cold) {
  const Flight flight = flights.Peek(k1, worker, cold);
  flights.Join(ticket, k1, worker, flight);
  return flight;
}

TEST(HalfLivesTest, OneLastsSomeSecondsAndAtLeastSomeRequests) {
  constexpr double kRequestsMin = 20;
  HalfLives busy(120);
  for (int i = 0; i <= 1'200; ++i) busy.OnRequest(At(100 + 0.1 * i), kRequestsMin);
  EXPECT_NEAR(busy.age(), 1, 0.1) << "120 s of many requests";
  HalfLives calm(120);
  for (int i = 0; i < 20; ++i) calm.OnRequest(At(3'600.0 * (i + 1)), kRequestsMin);
  EXPECT_NEAR(calm.age(), 1, 0.1) << "20 requests in as many hours";
  calm.OnRequest(At(0), kRequestsMin);
  EXPECT_NEAR(calm.age(), 1, 0.1) << "time never goes back";
}

TEST(LedgerTest, WhatWasGivenOfLateFadesButDoesNotEndWithTheRequest) {
  Ledger ledger;
  const Cost cost{.prefill_s = 2};
  ledger.Add(cost, At(0), 0);
  ledger.Answered(cost, At(2));
  ledger.Done(cost, true, 3, At(3));
  EXPECT_DOUBLE_EQ(ledger.recent_prefill_s(0), 2);
  EXPECT_DOUBLE_EQ(ledger.recent_prefill_s(2), 0.5);
}

TEST(SingleFlightTest, FollowersWaitForTheLeadersFirstByte) {
  SingleFlight flights(2048);
  EXPECT_EQ(Join(flights, Ticket(1), 7, kW, 5000), Flight::kLead);
  EXPECT_EQ(Join(flights, Ticket(2), 7, kW, 0), Flight::kFollow);
  EXPECT_EQ(Join(flights, Ticket(3), 7, kW, 0), Flight::kFollow);
  EXPECT_EQ(Join(flights, Ticket(4), 7, WorkerId(4), 0), Flight::kGo) << "warm elsewhere";
  EXPECT_EQ(flights.Landed(Ticket(1)), (std::vector<Ticket>{Ticket(2), Ticket(3)}));
  EXPECT_EQ(Join(flights, Ticket(5), 7, kW, 0), Flight::kGo);
  EXPECT_EQ(flights.size(), 0u);
}

TEST(SingleFlightTest, WarmOrShortPrefixesFlyAlone) {
  SingleFlight flights(2048);
  EXPECT_EQ(Join(flights, Ticket(1), 7, kW, 2047), Flight::kGo);
  EXPECT_EQ(Join(flights, Ticket(2), 7, kW, 2047), Flight::kGo);
}

TEST(SingleFlightTest, WhenTheLeaderFailsOneFollowerLeads) {
  SingleFlight flights(2048);
  for (uint64_t t = 1; t <= 3; ++t) Join(flights, Ticket(t), 7, kW, 5000);
  EXPECT_EQ(flights.Failed(Ticket(1)), std::vector<Ticket>{Ticket(2)});
  EXPECT_EQ(flights.Landed(Ticket(2)), std::vector<Ticket>{Ticket(3)});
}

TEST(SingleFlightTest, AFollowerMayLeaveAndIsNotReleasedAgain) {
  SingleFlight flights(2048);
  for (uint64_t t = 1; t <= 2; ++t) Join(flights, Ticket(t), 7, kW, 5000);
  flights.Leave(Ticket(2));
  EXPECT_TRUE(flights.Failed(Ticket(1)).empty());
  EXPECT_EQ(flights.size(), 0u);
}

}  // namespace
}  // namespace hidane::routing
