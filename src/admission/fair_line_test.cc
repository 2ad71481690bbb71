#include "admission/fair_line.h"

#include <gtest/gtest.h>

namespace hidane::admission {
namespace {

TimePoint At(double s) {
  return FromSeconds(s);
}

class FairLineTest : public testing::Test {
 protected:
  FairLine::Members::iterator Join(uint32_t tenant, double weight = 1,
                                   Class cls = Class::kDefault) {
    Member& member = outside_.emplace_front();
    member.key = ++last_key_;
    member.tenant = &shares_.Find(tenant, weight);
    member.cls = cls;
    member.own_tokens = 10;
    line_.Join(outside_, outside_.begin(), At(now_));
    return std::prev(line_.end());
  }
  /// The tenant that gets the next place, which it then holds for ever.
  uint32_t Give() {
    const auto next = line_.Next(At(now_));
    TenantShare& tenant = *next->tenant;
    line_.LetIn(next, outside_, At(now_));
    shares_.Holds(tenant, 1, 10, At(now_));
    return tenant.id;
  }

  double now_ = 0;
  uint64_t last_key_ = 0;
  TenantShares shares_{100};
  FairLine line_{shares_, 1'000'000};
  FairLine::Members outside_;
};

TEST_F(FairLineTest, ALongQueueOfOneTenantDoesNotDelayAnother) {
  for (int i = 0; i < 50; ++i) Join(1);
  EXPECT_EQ(Give(), 1u);
  now_ = 1;
  Join(2);
  now_ = 2;
  EXPECT_EQ(Give(), 2u) << "tenant 1 already holds something";
}

TEST_F(FairLineTest, PlacesFollowTheTenantsWeights) {
  std::map<uint32_t, int> given;
  for (int i = 0; i < 400; ++i) Join(1, 1), Join(2, 3);
  for (int i = 0; i < 200; ++i) {
    now_ += 1;
    ++given[Give()];
  }
  EXPECT_NEAR(given[2] / double(given[1]), 3, 0.2);
}

TEST_F(FairLineTest, ATenantThatWasAwayHasEarnedNothing) {
  for (int i = 0; i < 20; ++i) Join(1);
  for (int i = 0; i < 10; ++i) {
    now_ += 10;
    Give();
  }
  for (int i = 0; i < 10; ++i) Join(2);
  EXPECT_EQ(shares_.Service(*shares_.Peek(2), At(now_)),
            shares_.Service(*shares_.Peek(1), At(now_)));
}

TEST_F(FairLineTest, WhileNobodyWaitsNothingIsCharged) {
  Join(1);
  Give();
  now_ = 100;
  EXPECT_EQ(shares_.Service(*shares_.Peek(1), At(now_)), 0);
}

TEST_F(FairLineTest, EachSoManyPlacesOneGoesToWhoWaitsLongest) {
  FairLine line(shares_, 4);
  FairLine::Members out;
  for (int i = 0; i < 8; ++i) {
    Member& member = out.emplace_front();
    member.tenant = &shares_.Find(1, 1);
    member.cls = i == 0 ? Class::kBatch : Class::kInteractive;
    line.Join(out, out.begin(), At(0));
  }
  for (int place = 1; place <= 4; ++place) {
    const auto next = line.Next(At(0));
    EXPECT_EQ(next->cls == Class::kBatch, place == 4);
    line.LetIn(next, out, At(0));
  }
}

TEST_F(FairLineTest, AheadCountsTenantsInTurn) {
  Join(1), Join(1), Join(1);
  const auto mine = Join(2);
  Join(3), Join(1);
  EXPECT_EQ(line_.AheadOf(*mine).members, 1u) << "the first of tenant 1";
  EXPECT_EQ(line_.AheadOf(*mine).tokens, 10u);
  const auto second = Join(2);
  EXPECT_EQ(line_.AheadOf(*second).members, 4u) << "two of tenant 1, one of 3, one of its own";
  const auto batch = Join(4, 1, Class::kBatch);
  EXPECT_EQ(line_.AheadOf(*batch).members, 7u);
}

}  // namespace
}  // namespace hidane::admission
