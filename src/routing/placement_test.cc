#include "routing/placement.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <algorithm>
#include <map>
#include <set>

#include "base/rng.h"
#include "routing/placement_test_util.h"

namespace hidane::routing {
namespace {

using Homes = std::map<uint64_t, std::vector<WorkerId>>;

TEST(PlacementTest, APrefixKeepsItsHome) {
  Table table(Params{});
  for (uint32_t w = 0; w < 4; ++w) table->PutWorker(MakeMember(w, 100'000));
  const auto home = See(table, 1, 10'000);
  ASSERT_EQ(home.size(), 1u);
  EXPECT_EQ(table.assigned_tokens(home[0]), 10'000u);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(See(table, 1, 10'000), home);
  EXPECT_EQ(table.assigned_tokens(home[0]), 10'000u) << "counted once";
}

// The demonstration: memory for exactly four tenants a worker, no matter how they arrive.
TEST(PlacementTest, SixteenTenantsFitFourWorkersExactly) {
  constexpr uint32_t kTenant = 1000;
  for (const bool burst : {false, true}) {
    Table table(Params{});
    std::map<WorkerId, double> waits;
    for (uint32_t w = 0; w < 4; ++w) table->PutWorker(MakeMember(w, 5200 + 400));
    for (uint64_t t = 0; t < 16; ++t) {
      const auto wait = [&](WorkerId w) { return burst ? waits[w] : 0; };
      const auto sight = table.See(Mix64(t), kTenant, 1.0, wait, At(burst ? 0 : t * 2.0));
      ASSERT_EQ(sight.size(), 1u);
      waits[sight[0]] += 1.0;
    }
    for (uint32_t w = 0; w < 4; ++w) EXPECT_EQ(table.prefixes_at(WorkerId(w)), 4u);
  }
}

TEST(PlacementTest, AColdBurstSpreadsByWaitAndAMuchLoadedWorkerIsPassedOver) {
  Table table(Params{});
  for (uint32_t w = 0; w < 2; ++w) table->PutWorker(MakeMember(w, 1'000'000));
  const auto wait = [](WorkerId w) { return w == WorkerId(0) ? 5.0 : 0.0; };
  for (uint64_t t = 0; t < 8; ++t) {
    EXPECT_EQ(table.See(Mix64(t), 10'000, 1.0, wait, At(0))[0], WorkerId(1));
  }
}

TEST(PlacementTest, NewPrefixesGoWhereTheyMayBeTaken) {
  Table table(Params{});
  auto out = MakeMember(0, 1'000'000);
  out.takes_new = false;
  table->PutWorker(out);
  table->PutWorker(MakeMember(1, 100'000));
  for (uint64_t t = 0; t < 8; ++t) EXPECT_EQ(See(table, Mix64(t), 10'000)[0], WorkerId(1));
}

TEST(PlacementTest, WhenNothingFitsTheLeastFilledTakesIt) {
  Table table(Params{});
  table->PutWorker(MakeMember(0, 10'000));
  table->PutWorker(MakeMember(1, 20'000));
  See(table, 1, 9'000);
  See(table, 2, 9'000);
  See(table, 3, 9'000);
  EXPECT_EQ(See(table, 4, 9'000).size(), 1u);
  EXPECT_EQ(table.assigned_tokens(WorkerId(1)), 27'000u) << "twice the memory, twice the load";
}

TEST(PlacementTest, WhereAnExtraHomeMustStayANewPrefixGoesWhereMemoryHoldsIt) {
  Table table(Params{.spare_mark = 0});
  for (uint32_t w = 0; w < 2; ++w) table->PutWorker(MakeMember(w, 10'000));
  const WorkerId home = See(table, 1, 5'000).front();
  const WorkerId other(1 - home.value());
  table->Serve(1, 5'000, other, At(1));
  See(table, 2, 3'000, 1);  // goes there too: the extra home could make way
  for (int i = 0; i < 40; ++i) See(table, 1, 5'000, 1 + i * 0.01);
  EXPECT_EQ(See(table, 3, 3'500, 2).front(), home) << "one home would be crowded";
  for (const uint64_t tokens : table.assigned_tokens(2)) EXPECT_LE(tokens, 10'000u);
}

TEST(PlacementTest, PrefixesThatNobodyUsesMakeWay) {
  Table table(Params{.idle_release_s = 600});
  table->PutWorker(MakeMember(0, 10'000));
  See(table, 1, 9'000, 0);
  See(table, 2, 9'000, 700);
  EXPECT_FALSE(table->Knows(1));
  EXPECT_EQ(table.assigned_tokens(WorkerId(0)), 9'000u);
}

TEST(PlacementTest, TheTableIsBounded) {
  Table table(Params{.prefixes_max = 10});
  table->PutWorker(MakeMember(0, 1'000'000));
  for (uint64_t t = 0; t < 50; ++t) See(table, t, 100);
  EXPECT_EQ(table->size(), 10u);
  EXPECT_EQ(table.assigned_tokens(WorkerId(0)), 1'000u);
}

// Drives `seconds` of load in which prefix 0 has `hot` of ten requests a second.
void Load(Table& table, double from_s, double seconds, int hot, uint64_t prefixes,
          uint32_t tokens) {
  for (int i = 0; i < seconds * 10; ++i) {
    const uint64_t k1 = i % 10 < hot ? 0 : 1 + i % (prefixes - 1);
    See(table, k1, tokens, from_s + i / 10.0);
    const WorkerId* const cold = table->ColdHome(k1);
    if (cold != nullptr) table->Serve(k1, tokens, *cold, At(from_s + i / 10.0));
  }
}

TEST(PlacementTest, AHotPrefixGainsHomesAfterAWhileAndKeepsThemWhileMemoryLasts) {
  // Memory above the spare mark, so that only load counts.
  Table table(Params{.spare_mark = 0});
  for (uint32_t w = 0; w < 4; ++w) table->PutWorker(MakeMember(w, 100'000));
  for (uint64_t k1 = 0; k1 < 8; ++k1) See(table, k1, 10'000);
  Load(table, 1, 15, 6, 8, 10'000);
  EXPECT_EQ(See(table, 0, 10'000, 16).size(), 1u) << "a wish must last";
  Load(table, 16, 100, 6, 8, 10'000);
  EXPECT_EQ(See(table, 0, 10'000, 117).size(), 3u) << "six tenths of four workers, with headroom";
  for (uint64_t k1 = 100; k1 < 128; ++k1) See(table, k1, 10'000, 118);
  EXPECT_EQ(See(table, 0, 10'000, 120).size(), 3u) << "over the limit, within the memory";
  for (uint64_t k1 = 200; k1 < 216; ++k1) See(table, k1, 10'000, 121);
  EXPECT_EQ(See(table, 0, 10'000, 123).size(), 3u)
      << "two would each have more than a worker's load";
  Load(table, 124, 900, 1, 8, 10'000);
  EXPECT_EQ(See(table, 0, 10'000, 901).size(), 1u) << "no load asks for them any more";
}

TEST(PlacementTest, SpareMemoryBuysMoreHomesUpToItsMarkAndTheyMakeWay) {
  Table table(Params{.spare_headroom = 8});
  for (uint32_t w = 0; w < 4; ++w) table->PutWorker(MakeMember(w, 100'000));
  for (uint64_t k1 = 0; k1 < 16; ++k1) See(table, k1, 10'000);
  Load(table, 1, 300, 1, 16, 10'000);
  for (uint32_t w = 0; w < 4; ++w) {
    EXPECT_LE(table.assigned_tokens(WorkerId(w)), 70'000u);
    EXPECT_GE(table.assigned_tokens(WorkerId(w)), 60'000u);
  }
  for (uint64_t k1 = 100; k1 < 120; ++k1) See(table, k1, 10'000, 302);
  for (uint32_t w = 0; w < 4; ++w) EXPECT_LE(table.assigned_tokens(WorkerId(w)), 90'000u);
}

TEST(PlacementTest, ABusyPrefixMovesToAnIdleWorkerOnceAndThenAllStay) {
  Table table(Params{.headroom = 1, .spare_mark = 0});
  for (uint32_t w = 0; w < 2; ++w) table->PutWorker(MakeMember(w, 100'000));
  for (uint64_t k1 = 0; k1 < 6; ++k1) See(table, k1, 10'000);
  std::vector<uint64_t> busy;  // two that share a worker
  for (uint64_t k1 = 0; k1 < 6 && busy.size() < 2; ++k1) {
    if (table.Homes(k1)[0] == table.Homes(0)[0]) busy.push_back(k1);
  }
  ASSERT_EQ(busy.size(), 2u);
  int apart_since = -1;
  for (int i = 0; i < 20'000; ++i) {
    See(table, busy[static_cast<size_t>(i) % 2], 10'000, i * 0.1);
    const bool apart = table.Homes(busy[0])[0] != table.Homes(busy[1])[0];
    if (apart_since >= 0) {
      EXPECT_TRUE(apart) << i;
    }
    if (apart && apart_since < 0) apart_since = i;
  }
  EXPECT_GE(apart_since, 0);
}

TEST(PlacementTest, NoiseOfEqualPrefixesMovesNone) {
  Table table(Params{});
  for (uint32_t w = 0; w < 16; ++w) table->PutWorker(MakeMember(w, 400'000));
  for (uint64_t k1 = 0; k1 < 80; ++k1) See(table, k1, 27'000);
  (void)table.TakeDeltas();
  Rng rng(1);
  for (int i = 1; i < 6'000; ++i) See(table, rng.Below(80), 27'000, i / 20.0);
  EXPECT_TRUE(table.TakeDeltas().empty());
}

TEST(PlacementTest, ANewHomeIsColdUntilARequestIsServedThere) {
  Table table(Params{});
  for (uint32_t w = 0; w < 4; ++w) table->PutWorker(MakeMember(w, 100'000));
  See(table, 1, 10'000);
  EXPECT_EQ(table->ColdHome(1), nullptr) << "the first one computes it at once";
  for (int i = 0; i < 300 && table->ColdHome(1) == nullptr; ++i) See(table, 1, 10'000, i);
  ASSERT_NE(table->ColdHome(1), nullptr);
  const WorkerId cold = *table->ColdHome(1);
  table->Serve(1, 10'000, cold, At(301));
  EXPECT_TRUE(table->ColdHome(1) == nullptr || *table->ColdHome(1) != cold);
}

TEST(PlacementTest, NothingFlapsUnderNoise) {
  Table table(Params{});
  for (uint32_t w = 0; w < 4; ++w) table->PutWorker(MakeMember(w, 60'000));
  Rng rng(7);
  Homes homes;
  int changes = 0;
  for (int i = 0; i < 40'000; ++i) {
    const uint64_t k1 = rng.Below(16);
    const auto tokens = static_cast<uint32_t>(10'000 + rng.Below(200));  // the estimate breathes
    const auto now = See(table, k1, tokens, i * 0.05);
    changes += i > 4'000 && now != homes[k1];
    homes[k1] = now;
  }
  EXPECT_EQ(changes, 0);
}

TEST(PlacementTest, TheRefugeIsTheSameForAllRequestsOfAPrefix) {
  Table table(Params{});
  for (uint32_t w = 0; w < 4; ++w) table->PutWorker(MakeMember(w, 100'000));
  const WorkerId home = See(table, 1, 10'000)[0];
  const auto others = [&](WorkerId w) { return w != home; };
  const WorkerId* refuge = table->Refuge(1, 10'000, others);
  ASSERT_NE(refuge, nullptr);
  EXPECT_NE(*refuge, home);
  EXPECT_EQ(*table->Refuge(1, 10'000, others), *refuge);
  EXPECT_EQ(table->Refuge(1, 10'000, [](WorkerId) { return false; }), nullptr);
}

rc::Gen<std::vector<uint64_t>> Arrivals() {
  return rc::gen::container<std::vector<uint64_t>>(
      rc::gen::map(rc::gen::inRange<uint64_t>(0, 40), Mix64));
}

// Sizes belong to prefixes, not to requests.
uint32_t SizeOf(uint64_t k1) {
  return 100 + static_cast<uint32_t>(k1 % 1'900);
}

RC_GTEST_PROP(PlacementProperty, SameMembersAndSameArrivalsGiveTheSameTable, ()) {
  const auto arrivals = *Arrivals();
  const auto joins = *rc::gen::map(rc::gen::arbitrary<uint64_t>(), [](uint64_t seed) {
    std::vector<uint32_t> ids{0, 1, 2, 3, 4};
    Rng rng(seed);
    for (size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[rng.Below(i)]);
    return ids;
  });
  Table a(Params{});
  Table b(Params{});
  for (uint32_t w = 0; w < 5; ++w) a->PutWorker(MakeMember(w, 10'000));
  for (const uint32_t w : joins) b->PutWorker(MakeMember(w, 10'000));
  double t = 0;
  for (const uint64_t k1 : arrivals) {
    t += 0.3;
    RC_ASSERT(See(a, k1, SizeOf(k1), t) == See(b, k1, SizeOf(k1), t));
  }
}

RC_GTEST_PROP(PlacementProperty, AssignedNeverExceedsMemoryWhileAnyWorkerHasRoom, ()) {
  const auto arrivals = *Arrivals();
  Table table(Params{});
  for (uint32_t w = 0; w < 4; ++w) table->PutWorker(MakeMember(w, 5'000 + 1'000 * w));
  double t = 0;
  for (const uint64_t k1 : arrivals) {
    uint64_t room = 0;
    for (uint32_t w = 0; w < 4; ++w) {
      const double limit = 0.9 * (5'000 + 1'000 * w);
      const auto assigned = static_cast<double>(table.assigned_tokens(WorkerId(w)));
      room = std::max(room, static_cast<uint64_t>(std::max(0.0, limit - assigned)));
    }
    const bool fits = table->Knows(k1) || SizeOf(k1) <= room;
    See(table, k1, SizeOf(k1), t += 0.1);
    if (!fits) break;
    for (uint32_t w = 0; w < 4; ++w) {
      RC_ASSERT(table.assigned_tokens(WorkerId(w)) <= 5'000 + 1'000 * w);
    }
  }
}

// Fills a table and returns where everything is.
Homes Fill(Table& table, const std::set<uint64_t>& prefixes) {
  Homes homes;
  for (const uint64_t k1 : prefixes) homes[k1] = See(table, k1, 1'000);
  return homes;
}

RC_GTEST_PROP(PlacementProperty, ALeaveMovesOnlyItsOwn, ()) {
  const auto prefixes = *rc::gen::nonEmpty(rc::gen::arbitrary<std::set<uint64_t>>());
  const auto leaver = WorkerId(*rc::gen::inRange<uint32_t>(0, 5));
  Table table(Params{});
  for (uint32_t w = 0; w < 5; ++w) table->PutWorker(MakeMember(w, 1'000'000));
  const Homes before = Fill(table, prefixes);
  table->RemoveWorker(leaver);
  for (const auto& [k1, homes] : before) {
    const auto now = See(table, k1, 1'000);
    if (homes[0] == leaver) {
      RC_ASSERT(now[0] != leaver);
    } else {
      RC_ASSERT(now == homes);
    }
  }
}

TEST(PlacementTest, AJoinTakesItsPartAndMovesNothingElse) {
  constexpr uint32_t kWorkers = 8;
  constexpr uint64_t kPrefixes = 2'000;
  Table table(Params{});
  for (uint32_t w = 0; w < kWorkers; ++w) table->PutWorker(MakeMember(w, 100'000'000));
  std::set<uint64_t> prefixes;
  for (uint64_t t = 0; t < kPrefixes; ++t) prefixes.insert(Mix64(t));
  const Homes before = Fill(table, prefixes);
  table->PutWorker(MakeMember(kWorkers, 100'000'000));
  uint64_t moved = 0;
  for (const auto& [k1, homes] : before) {
    const auto now = See(table, k1, 1'000);
    if (now == homes) continue;
    EXPECT_EQ(now, std::vector<WorkerId>{WorkerId(kWorkers)});
    ++moved;
  }
  EXPECT_NEAR(static_cast<double>(moved), kPrefixes / (kWorkers + 1.0), 60);
}

// Whether the first of `prefixes` that four workers are asked for in turn wants a second home.
bool FirstWantsChoice(uint32_t prefixes, uint32_t tokens) {
  Table table{Params{}};
  for (uint32_t w = 0; w < 4; ++w) table->PutWorker(MakeMember(w, 100'000));
  for (uint32_t i = 0; i < 2 * prefixes; ++i) See(table, 1 + i % prefixes, tokens, 0.1 * i);
  return table->WantsChoice(1);
}

TEST(PlacementTest, WantsASecondHomeForATenthOfAWorkersLoadWhileMemoryIsToSpare) {
  EXPECT_TRUE(FirstWantsChoice(20, 3'000));
  EXPECT_FALSE(FirstWantsChoice(60, 1'000)) << "a fifteenth of a worker's load";
  EXPECT_FALSE(FirstWantsChoice(20, 16'000)) << "four fifths of the memory";
}

}  // namespace
}  // namespace hidane::routing
