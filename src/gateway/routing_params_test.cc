#include "gateway/routing_params.h"

#include <gtest/gtest.h>

#include <memory>

namespace hidane::gateway {
namespace {

std::unique_ptr<Config> Configured(std::vector<std::string> sets) {
  ConfigSources sources;
  sources.upstreams = {"http://127.0.0.1:9000"};
  sources.sets = std::move(sets);
  return LoadConfig(sources).value();
}

TEST(RoutingParams, DefaultsAreThoseThatTheSimulatorJudges) {
  EXPECT_EQ(RoutingParamsOf(*Configured({})), routing::Params{});
  EXPECT_EQ(HealthParamsOf(*Configured({})), routing::HealthParams{});
}

TEST(RoutingParams, AKeyReachesItsParameterInItsUnit) {
  const auto config = Configured({"routing.fill=0.5", "routing.short_k1_ms=70"});
  routing::Params wanted;
  wanted.fill = 0.5;
  wanted.short_k1_s = 0.07;
  EXPECT_EQ(RoutingParamsOf(*config), wanted);
}

}  // namespace
}  // namespace hidane::gateway
