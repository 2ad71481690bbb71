#include "sim/servegen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace hidane::sim {
namespace {

TEST(ServeGen, AsManyTenantsAsClientsHaveTheirShares) {
  const auto large = ServeGenWeights(ServeGenClass::kLarge, 162);
  EXPECT_NEAR(large[0], 0.160, 0.001);
  EXPECT_NEAR(std::accumulate(large.begin(), large.begin() + 10, 0.0), 0.632, 0.001);
  EXPECT_GE(std::accumulate(large.begin(), large.begin() + 39, 0.0), 0.9);
  EXPECT_LT(std::accumulate(large.begin(), large.begin() + 38, 0.0), 0.9);
  const auto small = ServeGenWeights(ServeGenClass::kSmall, 43);
  EXPECT_NEAR(small[0], 0.299, 0.001);
}

TEST(ServeGen, AnyNumberOfTenantsIsSkewedAlike) {
  for (const uint32_t tenants : {1u, 7u, 80u, 1000u}) {
    const auto weights = ServeGenWeights(ServeGenClass::kLarge, tenants);
    ASSERT_EQ(weights.size(), tenants);
    EXPECT_NEAR(std::accumulate(weights.begin(), weights.end(), 0.0), 1, 1e-9);
    for (size_t i = 1; i < weights.size(); ++i) EXPECT_LE(weights[i], weights[i - 1] + 1e-12);
    EXPECT_GE(*std::min_element(weights.begin(), weights.end()), 0);
  }
  EXPECT_NEAR(ServeGenWeights(ServeGenClass::kLarge, 81)[0], 0.160 + 0.072, 0.001);
}

}  // namespace
}  // namespace hidane::sim
