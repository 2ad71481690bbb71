#include "sim/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <functional>

#include "sim/report_series.h"

namespace hidane::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Thin, CountsAreSummedAndSharesAveraged) {
  Series series{.step = std::chrono::seconds(1), .points = {}};
  for (uint32_t i = 1; i <= 5; ++i) {
    series.points.push_back({.finished = i,
                             .prompt_tokens = 100 * i,
                             .cached_tokens = 50 * i,
                             .ttft_mean_s = 0.1 * i,
                             .ttft_max_s = 0.2 * i,
                             .kv_held = {0.1f * static_cast<float>(i)},
                             .kv_cached = {},
                             .assigned = {}});
  }
  const Series thin = Thin(series, 3);
  EXPECT_EQ(thin.step, std::chrono::seconds(2));
  ASSERT_EQ(thin.points.size(), 3u);
  EXPECT_EQ(thin.points[0].finished, 3u);
  EXPECT_EQ(thin.points[1].prompt_tokens, 700u);
  EXPECT_DOUBLE_EQ(thin.points[0].ttft_mean_s, (0.1 * 1 + 0.2 * 2) / 3);
  EXPECT_DOUBLE_EQ(thin.points[1].ttft_max_s, 0.8);
  EXPECT_FLOAT_EQ(thin.points[0].kv_held[0], 0.15f);
  EXPECT_FLOAT_EQ(thin.points[2].kv_held[0], 0.5f);
}

TEST(Thin, AShortSeriesStaysAsItIs) {
  const Series series{.step = std::chrono::seconds(1),
                      .points = {{.finished = 7}, {.finished = 2}}};
  const Series thin = Thin(series, 10);
  EXPECT_EQ(thin.step, series.step);
  ASSERT_EQ(thin.points.size(), 2u);
  EXPECT_EQ(thin.points[0].finished, 7u);
}

TEST(Thin, SpansWithoutASampleOfTheFleetDoNotCount) {
  Series series{.step = std::chrono::seconds(1), .points = {{.finished = 1}, {.finished = 1}}};
  series.points[0].kv_cached = series.points[0].kv_held = series.points[0].assigned = {0.8f};
  EXPECT_THAT(Thin(series, 1).points[0].kv_cached, ElementsAre(0.8f));
}

TEST(GroupWorkers, NeighboursShareARow) {
  const std::vector<float> shares = {0.f, 1.f, 0.5f, 0.5f, 1.f};
  EXPECT_THAT(GroupWorkers(shares, 3), ElementsAre(0.5f, 0.5f, 1.f));
  EXPECT_THAT(GroupWorkers(shares, 5), testing::ElementsAreArray(shares));
  EXPECT_TRUE(GroupWorkers({}, 5).empty());
}

TEST(Percentiles, AreNearestRanks) {
  std::vector<double> values;
  for (int i = 1; i <= 1'000; ++i) values.push_back(i);
  const auto percentiles = Percentiles(values);
  ASSERT_EQ(percentiles.size(), 103u);
  EXPECT_EQ(percentiles[0], 1);
  EXPECT_EQ(percentiles[50], 500);
  EXPECT_EQ(percentiles[100], 995);  // 99.5 %
  EXPECT_EQ(percentiles[101], 999);  // 99.9 %
  EXPECT_EQ(percentiles[102], 1'000);
  EXPECT_TRUE(Percentiles({}).empty());
}

Run LargeRun(size_t replicas, size_t seconds) {
  Run run;
  run.series.step = std::chrono::seconds(1);
  const std::vector<float> full(replicas, 1.0f);
  for (size_t i = 0; i < seconds; ++i) {
    run.series.points.push_back({.finished = 30,
                                 .prompt_tokens = 30'000,
                                 .cached_tokens = 12'345 + i,
                                 .kv_held = full,
                                 .kv_cached = full,
                                 .assigned = full});
  }
  for (int i = 1; i <= 1'000; ++i) run.ttft_s.push_back(0.001234 * i);
  return run;
}

std::string DataOf(const std::string& page) {
  const std::string_view begin = "<script type=\"application/json\" id=\"data\">";
  const size_t from = page.find(begin) + begin.size();
  return page.substr(from, page.find("</script>", from) - from);
}

TEST(HtmlReport, HoldsEveryRunAsJson) {
  HtmlReport report(1);
  sim::Run run = LargeRun(16, 100);
  run.plan.losses.push_back({.worker = 3, .at = std::chrono::seconds(60), .down = {}});
  Summary summary;
  summary.mean.policy = "prefix";
  report.Add(summary, run);
  const std::string data = DataOf(report.Page("{\"seed\":1}"));
  simdjson::dom::parser parser;
  const simdjson::dom::element document = parser.parse(data);
  const simdjson::dom::element drawn = document["runs"].at(0);
  EXPECT_EQ(std::string_view(drawn["row"]["policy"]), "prefix");
  EXPECT_EQ(uint64_t(drawn["replicas"]), 16u);
  EXPECT_EQ(drawn["ttft"].get_array().size(), 103u);
  EXPECT_EQ(drawn["held"].get_array().size(), 100u);
  EXPECT_EQ(uint64_t(drawn["held"].at(0).at(15)), 100u);
  EXPECT_EQ(std::string_view(drawn["events"].at(0)["what"]), "replica 3 lost");
}

TEST(HtmlReport, NamesCannotEndTheScript) {
  HtmlReport report(1);
  Summary summary;
  summary.mean.fleet = "</script><script>alert(1)</script><!--";
  report.Add(summary, sim::Run{});
  const std::string page = report.Page("{\"command\":\"hidane </script>\"}");
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  simdjson::dom::parser parser;
  const std::string data = DataOf(page);
  const simdjson::dom::element document = parser.parse(data);
  EXPECT_EQ(std::string_view(document["runs"].at(0)["row"]["fleet"]), summary.mean.fleet);
}

TEST(HtmlReport, StaysUnderThreeMegabytes) {
  const sim::Run large = LargeRun(200, 300), usual = LargeRun(16, 240);
  for (const size_t runs : {size_t{100}, HtmlReport::kRuns}) {
    for (const sim::Run& run : {std::cref(large), std::cref(usual)}) {
      HtmlReport report(runs);
      Summary summary;
      summary.mean.policy = "prefix";
      for (size_t i = 0; i < runs; ++i) report.Add(summary, run);
      EXPECT_LT(report.Page("{}").size(), 3'000'000u) << runs << " runs";
    }
  }
}

TEST(HtmlReport, AsksForNothingFromTheNetwork) {
  const std::string page = HtmlReport(0).Page("{}");
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, Not(HasSubstr("https://")));
  for (const std::string_view mark : {"/*report.css*/", "/*report.js*/", "/*data*/"}) {
    EXPECT_THAT(page, Not(HasSubstr(mark)));
  }
}

}  // namespace
}  // namespace hidane::sim
