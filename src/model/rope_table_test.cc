#include "model/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace hidane::model {
namespace {

/// (cos, sin) of pair `i` at `position`.
std::pair<float, float> At(const std::vector<float>& table, uint32_t head_dim, uint32_t position,
                           uint32_t i) {
  const size_t at = size_t{position} * head_dim + 2 * i;
  return {table[at], table[at + 1]};
}

TEST(RopeTable, TurnsPairsByPositionTimesFrequency) {
  const auto table = MakeRopeTable(8, 4, 4, 100.0f, {});
  ASSERT_EQ(table.size(), 32u);
  for (const uint32_t pair : {0u, 1u}) EXPECT_EQ(At(table, 4, 0, pair), std::pair(1.0f, 0.0f));
  EXPECT_FLOAT_EQ(At(table, 4, 3, 0).first, std::cos(3.0f));
  EXPECT_FLOAT_EQ(At(table, 4, 3, 0).second, std::sin(3.0f));
  EXPECT_FLOAT_EQ(At(table, 4, 7, 1).second, std::sin(0.7f));  // 100^(-2/4) = 1/10
}

TEST(RopeTable, DimensionsBeyondRopeDimsStandStill) {
  const auto table = MakeRopeTable(8, 8, 4, 100.0f, {});
  EXPECT_FLOAT_EQ(At(table, 8, 7, 1).second, std::sin(0.7f));
  EXPECT_EQ(At(table, 8, 7, 2), std::pair(1.0f, 0.0f));
  EXPECT_EQ(At(table, 8, 7, 3), std::pair(1.0f, 0.0f));
}

TEST(RopeTable, FactorsDivideTheFrequencies) {
  const std::vector<float> factors = {1.0f, 2.0f};
  const auto table = MakeRopeTable(8, 4, 4, 100.0f, factors);
  EXPECT_FLOAT_EQ(At(table, 4, 6, 0).second, std::sin(6.0f));
  EXPECT_FLOAT_EQ(At(table, 4, 6, 1).second, std::sin(0.3f));
}

TEST(RopeTable, FarPositionsAreAsExactAsNearOnes) {
  const auto table = MakeRopeTable(100'001, 2, 2, 10000.0f, {});
  EXPECT_EQ(At(table, 2, 100'000, 0).second, static_cast<float>(std::sin(100'000.0)));
}

}  // namespace
}  // namespace hidane::model
