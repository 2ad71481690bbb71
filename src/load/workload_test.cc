#include "load/workload.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <simdjson.h>

#include <cmath>
#include <set>

namespace hidane::load {
namespace {

TEST(Plan, SameSeedSamePlan) {
  const WorkloadOptions options{.tenants = 16, .requests = 100, .rate = 5, .seed = 7};
  const auto a = MakePlan(options), b = MakePlan(options);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].tenant, b[i].tenant);
    EXPECT_EQ(a[i].at, b[i].at);
    EXPECT_EQ(a[i].own_seed, b[i].own_seed);
  }
}

TEST(Plan, RateChangesArrivalsButNotTheTenants) {
  const auto closed = MakePlan({.requests = 50, .rate = 0, .seed = 3});
  const auto open = MakePlan({.requests = 50, .rate = 9, .seed = 3});
  for (size_t i = 0; i < closed.size(); ++i) {
    EXPECT_EQ(closed[i].tenant, open[i].tenant);
    EXPECT_EQ(closed[i].at, Duration{0});
  }
}

TEST(Plan, PoissonArrivalsHaveTheAskedMeanAndItsOwnSpread) {
  constexpr uint32_t kN = 20'000;
  const auto plan = MakePlan({.requests = kN, .rate = 50, .seed = 1});
  EXPECT_NEAR(Seconds(plan.back().at), kN / 50.0, kN / 50.0 * 0.03);
  double squares = 0;
  for (size_t i = 1; i < plan.size(); ++i) {
    ASSERT_LE(plan[i - 1].at, plan[i].at);
    const double gap = Seconds(plan[i].at - plan[i - 1].at) - 1 / 50.0;
    squares += gap * gap;
  }
  // Exponential gaps: the deviation equals the mean.
  EXPECT_NEAR(std::sqrt(squares / kN), 1 / 50.0, 0.001);
}

TEST(Plan, ZipfGivesTheFirstTenantItsShare) {
  const auto plan = MakePlan({.tenants = 4, .requests = 10'000, .zipf_s = 1, .seed = 2});
  std::vector<int> counts(4);
  for (const auto& r : plan) ++counts[r.tenant];
  EXPECT_NEAR(counts[0], 10'000 * 12 / 25.0, 200);  // 1 / (1 + 1/2 + 1/3 + 1/4) = 12/25
  EXPECT_NEAR(counts[3], 10'000 * 3 / 25.0, 150);
}

RC_GTEST_PROP(Plan, NeverLeavesItsTenants, ()) {
  WorkloadOptions options;
  options.tenants = *rc::gen::inRange(1u, 40u);
  options.zipf_s = *rc::gen::inRange(0, 30) / 10.0;
  options.requests = 200;
  options.seed = *rc::gen::arbitrary<uint64_t>();
  for (const auto& r : MakePlan(options)) RC_ASSERT(r.tenant < options.tenants);
}

RC_GTEST_PROP(StaticPrefix, HasTheAskedSizeAndParses, ()) {
  const auto bytes = *rc::gen::inRange<size_t>(100, 60'000);
  const StaticPrefix prefix = MakeStaticPrefix(*rc::gen::arbitrary<uint64_t>(), bytes);
  RC_ASSERT(prefix.bytes() <= bytes);
  RC_ASSERT(prefix.bytes() + 24 >= bytes);
  if (prefix.tools_json.empty()) return;
  simdjson::dom::parser parser;
  simdjson::dom::array tools;
  RC_ASSERT(!parser.parse(prefix.tools_json).get(tools));
  std::set<std::string_view> names;
  for (auto tool : tools) {
    std::string_view name;
    RC_ASSERT(!tool["function"]["name"].get(name));
    RC_ASSERT(names.insert(name).second);
  }
}

TEST(StaticPrefix, DiffersBetweenTenantsFromEarlyOn) {
  const Workload workload({.tenants = 16, .static_tokens = 1000}, 4.0);
  std::set<std::string> heads;
  for (uint32_t t = 0; t < 16; ++t) heads.insert(workload.prefix(t).system.substr(0, 12));
  EXPECT_EQ(heads.size(), 16u);
}

TEST(Body, CarriesToolsModelAndUsage) {
  const Workload workload({.tenants = 2, .model = "m", .ignore_eos = true}, 4.0);
  simdjson::dom::parser parser;
  const auto body = workload.Body(workload.Extra(1, 0));
  simdjson::dom::element doc = parser.parse(body);
  EXPECT_EQ(doc["model"].get_string().value(), "m");
  EXPECT_GT(doc["tools"].get_array().value().size(), 5u);
  EXPECT_TRUE(doc["stream_options"]["include_usage"].get_bool().value());
  EXPECT_TRUE(doc["ignore_eos"].get_bool().value());
  EXPECT_EQ(doc["messages"].get_array().value().size(), 2u);
}

TEST(Body, SameTenantSharesAllButTheUsersText) {
  const Workload workload({.tenants = 2}, 4.0);
  const auto a = workload.Body(workload.Extra(0, 1)), b = workload.Body(workload.Extra(0, 2));
  EXPECT_NE(a, b);
  EXPECT_EQ(a.substr(0, a.find("\"user\"")), b.substr(0, b.find("\"user\"")));
}

TEST(Trace, ReadsMooncakeLines) {
  const auto plan = ParseTrace(
      R"({"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [1, 2, 3]}
{"timestamp": 2500, "input_length": 20, "output_length": 0, "hash_ids": [9]}
)",
      10);
  ASSERT_TRUE(plan.has_value());
  ASSERT_EQ(plan->size(), 2u);
  EXPECT_EQ((*plan)[0].blocks, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ((*plan)[0].own_tokens, 1100u - 2 * 512);
  EXPECT_EQ((*plan)[1].at, std::chrono::milliseconds(2500));
  EXPECT_TRUE((*plan)[1].blocks.empty());
}

TEST(Trace, EqualBlocksAreEqualText) {
  const Workload workload({.tenants = 1}, 4.0);
  const auto a = workload.Body({.tenant = kNoTenant, .own_seed = 1, .blocks = {5, 6}});
  const auto b = workload.Body({.tenant = kNoTenant, .own_seed = 1, .blocks = {5, 7}});
  size_t same = 0;
  while (a[same] == b[same]) ++same;
  EXPECT_GT(same, 384u);
}

TEST(Trace, RefusesWhatIsNotARequest) {
  for (const char* bad :
       {"", "\n", "{}", "nonsense",
        R"({"timestamp":-1,"input_length":1,"output_length":1,"hash_ids":[]})",
        R"({"timestamp":1,"input_length":1,"output_length":1,"hash_ids":["x"]})"}) {
    const auto plan = ParseTrace(bad, 10);
    ASSERT_FALSE(plan.has_value()) << bad;
    EXPECT_EQ(plan.error().code, Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace hidane::load
