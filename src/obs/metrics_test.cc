#include "obs/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hidane::obs {
namespace {

using ::testing::HasSubstr;

TEST(RegistryTest, SameNameAndLabelsIsTheSameCell) {
  Registry r;
  r.counter("c_total", "help", {{"a", "1"}}).Add(2);
  r.counter("c_total", "help", {{"a", "1"}}).Add(3);
  r.counter("c_total", "help", {{"a", "2"}}).Add(7);
  EXPECT_EQ(r.counter("c_total", "help", {{"a", "1"}}).value(), 5u);
  EXPECT_EQ(r.counter("c_total", "help", {{"a", "2"}}).value(), 7u);
}

TEST(RegistryTest, PrintsTheExpositionFormatWithEscapedLabels) {
  Registry r;
  r.counter("c_total", "counts", {{"path", "a\"b\n"}}).Add(1);
  r.gauge("g", "level").Set(1.5);
  const std::string text = r.Scrape();
  EXPECT_THAT(text, HasSubstr("# TYPE c_total counter\nc_total{path=\"a\\\"b\\n\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("# HELP g level\n# TYPE g gauge\ng 1.5\n"));
}

TEST(HistogramTest, BucketsAreCumulativeInTheTextAndUpperBoundsInclusive) {
  Registry r;
  const double bounds[] = {1, 2};
  Histogram& h = r.histogram("h", "x", bounds);
  for (const double x : {0.5, 1.0, 1.5, 9.0}) h.Observe(x);
  EXPECT_EQ(h.count(), 4u);
  EXPECT_THAT(r.Scrape(), HasSubstr("h_bucket{le=\"1\"} 2\nh_bucket{le=\"2\"} 3\n"
                                    "h_bucket{le=\"+Inf\"} 4\nh_sum 12\nh_count 4\n"));
}

TEST(RegistryTest, ScrapeHooksRunBeforePrinting) {
  Registry r;
  Gauge& g = r.gauge("depth", "x");
  r.OnScrape([&g] { g.Set(3); });
  EXPECT_THAT(r.Scrape(), HasSubstr("depth 3\n"));
}

}  // namespace
}  // namespace hidane::obs
