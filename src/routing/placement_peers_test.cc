// Gateways before the same workers: who changes what, what the others hear of it, and what they do
// alike when they hear nothing.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "routing/placement_test_util.h"

namespace hidane::routing {
namespace {

constexpr uint32_t kTokens = 10'000;

void PutWorkers(Table& table, uint32_t workers, uint64_t capacity) {
  for (uint32_t w = 0; w < workers; ++w) table->PutWorker(MakeMember(w, capacity));
}

void Tell(const std::vector<Delta>& deltas, Table& table, double at_s) {
  for (const Delta& delta : deltas) table->Merge(delta, At(at_s));
}

void Drive(Table& table, uint64_t k1, double from_s, double until_s) {
  for (double at_s = from_s; at_s < until_s; at_s += 0.1) See(table, k1, kTokens, at_s);
}

TEST(PlacementPeersTest, TheGatewayThatPlacedAPrefixGivesItHomesAndOthersOnlyAfterLonger) {
  Table placer(Params{.replica = 1});
  Table other(Params{.replica = 2});
  for (Table* table : {&placer, &other}) PutWorkers(*table, 4, 100'000);
  See(placer, 1, kTokens);
  Tell(placer.TakeDeltas(), other, 0);
  Drive(placer, 1, 1, 50);
  Drive(other, 1, 1, 50);
  EXPECT_GT(placer.Homes(1).size(), 1u);
  EXPECT_EQ(other.Homes(1).size(), 1u);
  Drive(other, 1, 50, 90);
  EXPECT_GT(other.Homes(1).size(), 1u) << "the other one may be gone";
}

TEST(PlacementPeersTest, ANewHomeIsToldOnceARequestIsServedThere) {
  Table table(Params{});
  PutWorkers(table, 4, 100'000);
  See(table, 1, kTokens);
  (void)table.TakeDeltas();
  for (double at_s = 1; table->ColdHome(1) == nullptr; at_s += 0.1) See(table, 1, kTokens, at_s);
  EXPECT_TRUE(table.TakeDeltas().empty());
  const WorkerId cold = *table->ColdHome(1);
  table->Serve(1, kTokens, cold, At(100));
  const std::vector<Delta> told = table.TakeDeltas();
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.front().kind, Delta::Kind::kAddHome);
  EXPECT_EQ(told.front().worker, MakeMember(cold.value(), 0).key);
}

TEST(PlacementPeersTest, AColdHomeThatAnotherMadeTheFirstOneIsWarm) {
  Table table(Params{});
  PutWorkers(table, 4, 100'000);
  See(table, 1, kTokens);
  for (double at_s = 1; table->ColdHome(1) == nullptr; at_s += 0.1) See(table, 1, kTokens, at_s);
  const uint64_t worker = MakeMember(table->ColdHome(1)->value(), 0).key;
  table->Merge({.key = 1,
                .worker = worker,
                .stamp = {.epoch = 1'000, .replica = 1},
                .tokens = kTokens,
                .kind = Delta::Kind::kPlace},
               At(100));
  EXPECT_EQ(table->ColdHome(1), nullptr) << "or all requests would go there for good";
}

TEST(PlacementPeersTest, AHomeThatAnotherGaveStaysWhileAllFits) {
  Table table(Params{.replica = 2});
  PutWorkers(table, 2, 50'000);
  const auto delta = [](Delta::Kind kind, uint64_t key, uint32_t worker, uint32_t tokens) {
    return Delta{.key = key,
                 .worker = MakeMember(worker, 0).key,
                 .stamp = {.epoch = key, .replica = 1},
                 .tokens = tokens,
                 .kind = kind};
  };
  Tell({delta(Delta::Kind::kPlace, 1, 0, 10'000), delta(Delta::Kind::kPlace, 2, 1, 37'000),
        delta(Delta::Kind::kAddHome, 1, 1, 10'000)},
       table, 0);
  for (int at_s = 1; at_s < 5; ++at_s) See(table, 3, 1'000, at_s);
  EXPECT_EQ(table.Homes(1).size(), 2u) << "over the limit, within the memory";
  Tell({delta(Delta::Kind::kPlace, 4, 1, 5'000)}, table, 5);
  for (int at_s = 6; at_s < 10; ++at_s) See(table, 3, 1'000, at_s);
  EXPECT_EQ(table.Homes(1).size(), 1u);
}

TEST(PlacementPeersTest, APrefixThatOthersUseIsNotIdle) {
  const auto homes_after = [](bool used) {
    Table table(Params{.replica = 1});
    PutWorkers(table, 1, 20'000);
    See(table, 1, kTokens);
    if (used) table->Use(1, 0, At(500));
    for (int at_s = 700; at_s < 703; ++at_s) See(table, 2, kTokens, at_s);  // has no room beside it
    return table.Homes(1).size();
  };
  EXPECT_EQ(homes_after(false), 0u);
  EXPECT_EQ(homes_after(true), 1u);
}

TEST(PlacementPeersTest, SilentGatewaysChooseAlikeWhateverEachSees) {
  Table a(Params{.replica = 1, .silent_peers = true});
  Table b(Params{.replica = 2, .silent_peers = true});
  for (Table* table : {&a, &b}) PutWorkers(*table, 8, 1'000'000);
  constexpr uint64_t kPrefixes = 40;
  for (uint64_t k1 = 0; k1 < kPrefixes; ++k1) {
    See(a, Mix64(k1), kTokens);
    See(b, Mix64(kPrefixes - 1 - k1), kTokens);
  }
  Rng rng(1);
  for (int i = 0; i < 4'000; ++i) {
    const uint64_t k1 = rng.Below(kPrefixes);
    See(a, Mix64(k1 % 8), kTokens, i * 0.05);  // few prefixes, so that homes are given
    See(b, Mix64(k1), kTokens, i * 0.05);
  }
  size_t grown = 0;
  for (uint64_t k1 = 0; k1 < kPrefixes; ++k1) {
    const auto homes = a.Homes(Mix64(k1));
    EXPECT_EQ(homes[0], b.Homes(Mix64(k1))[0]);
    if (homes.size() == 1) continue;
    ++grown;
    const auto score = [&](WorkerId w) {
      return RendezvousScore(Mix64(k1), MakeMember(w.value(), 1'000'000));
    };
    for (uint32_t w = 0; w < 8; ++w) {
      const bool home = std::ranges::find(homes, WorkerId(w)) != homes.end();
      EXPECT_TRUE(home || score(WorkerId(w)) < score(homes.back())) << "not in rendezvous order";
    }
  }
  EXPECT_GT(grown, 0u);
}

}  // namespace
}  // namespace hidane::routing
