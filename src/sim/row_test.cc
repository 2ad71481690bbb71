#include "sim/row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "sim/percentile.h"

namespace hidane::sim {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Row, HasEveryKeyOfTheContract) {
  JsonWriter out;
  AppendJson(Row{}, out);
  for (const char* key : {"scenario",
                          "fleet",
                          "phase",
                          "working_set",
                          "policy",
                          "gateways",
                          "deltas",
                          "requests",
                          "hit_ratio",
                          "hit_ratio_bound",
                          "ttft_p50_s",
                          "ttft_p99_s",
                          "admission_wait_mean_s",
                          "admission_wait_p99_s",
                          "ttft_with_wait_p99_s",
                          "recompute_share",
                          "static_prefill_share",
                          "goodput_rps",
                          "requests_per_s",
                          "load_imbalance",
                          "load_imbalance_bound",
                          "mean_homes",
                          "keys_moved",
                          "keys_lost",
                          "decisions_per_s",
                          "index_bytes",
                          "index_bytes_per_entry"}) {
    EXPECT_THAT(out.str(), HasSubstr('"' + std::string(key) + "\":")) << key;
  }
}

TEST(Row, LeavesOutWhatTheMachineMeasuredWhereRowsAreCompared) {
  JsonWriter out;
  AppendJson(Row{}, out, /*wall=*/false);
  EXPECT_THAT(out.str(), Not(HasSubstr("decisions_per_s")));
  EXPECT_THAT(out.str(), Not(HasSubstr("index_bytes")));
}

TEST(Summary, IsTheMeanWithStudentsInterval) {
  std::vector<Row> runs(5);
  for (int i = 0; i < 5; ++i) runs[i].requests_per_s = 40 + i;  // sd 1.5811
  runs[2].ttft_p99_s = 1;                                       // unknown in the others
  const Summary summary = Summarize(runs);
  EXPECT_DOUBLE_EQ(summary.mean.requests_per_s, 42);
  EXPECT_NEAR(summary.half_width.requests_per_s, 2.776 * 1.5811 / std::sqrt(5.0), 1e-3);
  EXPECT_TRUE(std::isnan(summary.mean.ttft_p99_s));
  EXPECT_EQ(summary.seeds, 5u);
}

TEST(Summary, OfOneRunHasNoInterval) {
  Row run;
  run.hit_ratio = 0.5;
  const Summary summary = Summarize({&run, 1});
  EXPECT_EQ(summary.mean.hit_ratio, 0.5);
  EXPECT_TRUE(std::isnan(summary.half_width.hit_ratio));
  JsonWriter out;
  AppendJson(summary, out);
  EXPECT_THAT(out.str(), Not(HasSubstr("half_width")));
}

TEST(Percentile, IsTheNearestRank) {
  std::vector<double> values = {5, 1, 4, 2, 3};
  EXPECT_EQ(Percentile(values, 0.5), 3);
  EXPECT_EQ(Percentile(values, 0.61), 4);
  EXPECT_EQ(Percentile(values, 0.2), 1);
  EXPECT_EQ(Percentile(values, 0.99), 5);
  values.clear();
  EXPECT_TRUE(std::isnan(Percentile(values, 0.5)));
  EXPECT_TRUE(std::isnan(Mean(values)));
}

}  // namespace
}  // namespace hidane::sim
