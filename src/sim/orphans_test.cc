#include "sim/orphans.h"

#include <gmock/gmock.h>

namespace hidane::sim {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Orphans, ARetryAdoptsItsRunOnce) {
  Orphans orphans({});
  orphans.Add(70, 1, seconds(0));
  orphans.Add(80, 2, seconds(0));
  EXPECT_EQ(orphans.Adopt(90), std::nullopt);
  EXPECT_EQ(orphans.Adopt(80), 2u);
  EXPECT_EQ(orphans.Adopt(80), std::nullopt);
  EXPECT_THAT(orphans.TakeOverdue(seconds(100)), ElementsAre(1));
  EXPECT_THAT(orphans.TakeOverdue(seconds(100)), IsEmpty());
}

TEST(Orphans, OneThatHasItsAnswerWaitsLongerThanOneThatComputes) {
  Orphans orphans({.grace = seconds(2), .keep = seconds(30)});
  orphans.Add(70, 1, seconds(0));
  orphans.Add(80, 2, seconds(0));
  orphans.Answered(2, seconds(1));
  EXPECT_THAT(orphans.TakeOverdue(seconds(2)), ElementsAre(1));
  EXPECT_THAT(orphans.TakeOverdue(seconds(30)), IsEmpty());
  EXPECT_EQ(orphans.Adopt(80), 2u);
}

TEST(Orphans, TheOldestGoesForOneTooMany) {
  Orphans orphans({.most = 2});
  EXPECT_EQ(orphans.Add(70, 1, seconds(0)), std::nullopt);
  EXPECT_EQ(orphans.Add(80, 2, seconds(0)), std::nullopt);
  EXPECT_EQ(orphans.Add(90, 3, seconds(0)), 1u);
  EXPECT_EQ(orphans.Adopt(70), std::nullopt);
}

TEST(Orphans, ABrokenRunIsForgotten) {
  Orphans orphans({});
  orphans.Add(70, 1, seconds(0));
  orphans.Forget(1);
  EXPECT_EQ(orphans.Adopt(70), std::nullopt);
}

}  // namespace
}  // namespace hidane::sim
