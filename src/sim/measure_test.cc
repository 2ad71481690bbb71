#include "sim/measure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "sim/engine_test_util.h"

namespace hidane::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kChange = seconds(60);

/// Recovery of a run of 180 s with an answer each second, of whose prompt `hit(second)` was cached.
double Recovery(const std::function<double(int)>& hit) {
  constexpr uint32_t kTokens = 1'000;
  Agenda agenda;
  const EngineOptions engine = RoundNumbers();
  const Cluster cluster({&engine, 1}, 0, agenda);
  Measure measure;
  for (int s = 0; s < 180; ++s) {
    Request request;
    request.id = static_cast<uint64_t>(s) + 1;
    request.arrival = seconds(s);
    request.prompt.tokens = kTokens;
    measure.OnSend(request, cluster, request.arrival);
    measure.OnEnd(
        {.id = request.id, .ok = true, .cached_tokens = static_cast<uint32_t>(kTokens * hit(s))},
        request.arrival + milliseconds(500));
  }
  return measure.RecoverySeconds(kChange);
}

TEST(RecoverySeconds, IsZeroWithoutADip) {
  EXPECT_EQ(Recovery([](int) { return 0.9; }), 0);
  EXPECT_EQ(Recovery([](int s) { return s < 60 ? 0.90 : 0.86; }), 0) << "95 % of it will do";
}

// The last cold second is 74; ten seconds are warm again from 75 to 85.
TEST(RecoverySeconds, EndsWhenTheHitRatioOfTenSecondsIsBack) {
  EXPECT_EQ(Recovery([](int s) { return s >= 60 && s < 75 ? 0 : 0.9; }), 25);
}

// At 76 % of what it was in every second of the dip, two of ten are within the 5 %.
TEST(RecoverySeconds, NeedsNinetyFivePercentOfWhatItWas) {
  EXPECT_EQ(Recovery([](int s) { return s >= 60 && s < 80 ? 0.76 : 1.0; }), 28);
}

TEST(RecoverySeconds, CountsUntilItIsBackForGood) {
  const auto dips_twice = [](int s) {
    const bool cold = (s >= 60 && s < 65) || (s >= 100 && s < 105);
    return cold ? 0 : 0.9;
  };
  EXPECT_EQ(Recovery(dips_twice), 55);
}

TEST(RecoverySeconds, IsUnknownWhereItNeverComesBack) {
  EXPECT_TRUE(std::isnan(Recovery([](int s) { return s < 60 ? 0.9 : 0.5; })));
}

}  // namespace
}  // namespace hidane::sim
