#include "load/report.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>

#include "load/shares.h"

namespace hidane::load {
namespace {

using std::chrono::milliseconds;

Outcome Ok(int64_t intended, int64_t sent, int64_t first, int64_t last) {
  Outcome o;
  o.intended = milliseconds(intended);
  o.sent = milliseconds(sent);
  o.first = milliseconds(first);
  o.last = o.done = milliseconds(last);
  o.prompt_tokens = 100;
  o.completion_tokens = 11;
  o.usage_seen = true;
  return o;
}

TEST(Percentile, IsNearestRank) {
  std::vector<double> v = {15, 20, 35, 40, 50};
  EXPECT_EQ(Percentile(v, 0.05), 15);
  EXPECT_EQ(Percentile(v, 0.30), 20);
  EXPECT_EQ(Percentile(v, 0.50), 35);
  EXPECT_EQ(Percentile(v, 1.00), 50);
  std::vector<double> none;
  EXPECT_TRUE(std::isnan(Percentile(none, 0.5)));
}

RC_GTEST_PROP(Percentile, IsTheLeastValueThatCoversItsShare, ()) {
  auto v = *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(
      rc::gen::map(rc::gen::inRange(0, 50), [](int x) { return double(x); })));
  const double p = *rc::gen::inRange(1, 101) / 100.0;
  const double x = Percentile(v, p);
  const auto covered = [&](double limit) {
    return double(std::count_if(v.begin(), v.end(), [&](double y) { return y <= limit; }));
  };
  RC_ASSERT(covered(x) >= p * double(v.size()) - 1e-9);
  RC_ASSERT(covered(x - 0.5) < p * double(v.size()) + 1e-9);
}

TEST(Ttft, OpenLoopCountsFromTheIntendedTime) {
  // The generator came 300 ms late: coordinated omission would report 50 ms.
  const Outcome late = Ok(1000, 1300, 1350, 1500);
  EXPECT_DOUBLE_EQ(TtftSeconds(late, true), 0.350);
  EXPECT_DOUBLE_EQ(TtftSeconds(late, false), 0.050);
}

TEST(Row, CountsTokensTimesAndErrors) {
  std::vector<Outcome> run = {Ok(0, 0, 100, 200), Ok(0, 0, 300, 500), Ok(0, 0, 0, 2000)};
  run[0].cached_tokens = 90;
  run[2].end = End::kCut;
  const Row row = MakeRow("prefix", run, false);
  EXPECT_EQ(row.requests, 3u);
  EXPECT_EQ(row.errors, 1u);
  EXPECT_EQ(row.ends[size_t(End::kCut)], 1u);
  EXPECT_DOUBLE_EQ(row.hit_ratio, 90.0 / 200);
  EXPECT_DOUBLE_EQ(row.ttft_p50_s, 0.1);
  EXPECT_DOUBLE_EQ(row.ttft_p99_s, 0.3);
  EXPECT_DOUBLE_EQ(row.tpot_p50_s, 0.010);
  EXPECT_DOUBLE_EQ(row.wall_s, 2.0);
  EXPECT_DOUBLE_EQ(row.requests_per_s, 1.0);
}

TEST(Row, SaysNothingOfHitsWhenTheServerDoesNotCountThem) {
  std::vector<Outcome> run = {Ok(0, 0, 100, 200)};
  run[0].usage_seen = false;
  run[0].prompt_tokens = 0;
  EXPECT_TRUE(std::isnan(MakeRow("x", run, false).hit_ratio));
}

TEST(RowsJson, HasTheContractsKeysInOrder) {
  const std::vector<Outcome> run = {Ok(0, 0, 100, 200)};
  const std::vector<Row> rows = {MakeRow("prefix", run, false)};
  const std::string json = RowsJson(MakeMeta({"1", "abc"}, "load", 7, "hidane load"), rows);
  simdjson::dom::parser parser;
  simdjson::dom::element doc = parser.parse(json);
  std::vector<std::string_view> keys;
  const simdjson::dom::object row = doc["rows"].at(0).get_object();
  for (const auto field : row) keys.push_back(field.key);
  keys.resize(11);
  EXPECT_EQ(keys, (std::vector<std::string_view>{"policy", "requests", "errors", "hit_ratio",
                                                 "ttft_p50_s", "ttft_p99_s", "tpot_p50_s",
                                                 "recompute_share", "static_prefill_share",
                                                 "requests_per_s", "wall_s"}));
  EXPECT_TRUE(doc["rows"].at(0)["recompute_share"].is_null());
  for (const char* key :
       {"tool", "version", "commit", "compiler", "cpu", "cpu_flags", "seed", "command"}) {
    EXPECT_FALSE(doc["meta"][key].error()) << key;
  }
  EXPECT_EQ(doc["meta"]["seed"].get_uint64().value(), 7u);
}

TEST(RowsTable, LinesUpWhateverTheNamesAre) {
  std::vector<Outcome> run = {Ok(0, 0, 100, 200)};
  std::vector<Row> rows = {MakeRow("round_robin", run, false), MakeRow("x", run, false)};
  rows[1].recompute_share = 0.5;
  rows[1].shares_estimated = true;
  const std::string table = RowsTable(rows);
  std::vector<size_t> lengths;
  for (size_t at = 0; at < table.size();) {
    const size_t end = table.find('\n', at);
    lengths.push_back(end - at);
    at = end + 1;
  }
  ASSERT_EQ(lengths.size(), 3u);
  EXPECT_EQ(lengths[0], lengths[1]);
  EXPECT_EQ(lengths[0], lengths[2]);
  EXPECT_NE(table.find("~50.0 %"), std::string::npos);
}

TEST(TtftHistogram, CountsEveryRequestOnce) {
  std::vector<Outcome> run;
  for (int ms : {3, 3, 200, 7000}) run.push_back(Ok(0, 0, ms, ms));
  const std::string text = TtftHistogram(run, false, 40, false);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 12);  // 4 ms .. 8.2 s, doubling
  EXPECT_EQ(std::count(text.begin(), text.end(), '#'), 40 + 20 + 20);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(TtftHistogram({}, false, 40, false), "");
}

TEST(ErrorLine, NamesKindsAndAnExample) {
  std::vector<Outcome> run = {Ok(0, 0, 1, 2), Ok(0, 0, 1, 2)};
  EXPECT_EQ(ErrorLine(MakeRow("x", run, false), run), "");
  run[1].end = End::kHttp429;
  run[1].detail = "queue full";
  const std::string line = ErrorLine(MakeRow("x", run, false), run);
  EXPECT_NE(line.find("http_429"), std::string::npos);
  EXPECT_NE(line.find("queue full"), std::string::npos);
}

TEST(SumMetric, AddsSeriesAndSkipsNamesakes) {
  constexpr std::string_view kText =
      "# TYPE a_total counter\na_total{x=\"}\"} 2\na_total{x=\"2\"} 3.5\na_total_more 100\nb NaN\n";
  EXPECT_EQ(SumMetric(kText, "a_total"), 5.5);
  EXPECT_EQ(SumMetric(kText, "c"), std::nullopt);
}

TEST(Shares, FirstSightAtAWorkerIsNotRecompute) {
  Outcome o = Ok(0, 0, 1, 2);
  o.prompt_tokens = 100;
  o.completion_tokens = 10;
  o.worker = "0";
  std::vector<Outcome> warmup = {o}, run = {o, o};
  run[1].worker = "1";
  const std::vector<uint32_t> static_tokens = {80};
  const Shares shares = EstimateShares(warmup, run, static_tokens);
  EXPECT_DOUBLE_EQ(shares.static_prefill, 160.0 / 240);
  EXPECT_DOUBLE_EQ(shares.recompute, 80.0 / 240);
}

TEST(Shares, NothingIsSaidWithoutStaticTokens) {
  const Outcome o = Ok(0, 0, 1, 2);
  const std::vector<uint32_t> none = {0};
  EXPECT_TRUE(std::isnan(EstimateShares({}, {&o, 1}, none).recompute));
}

TEST(Shares, EnginesOwnClocksWin) {
  const auto before = ParseEngineCounters(
      "hidane_engine_busy_seconds_total 1\nhidane_engine_prefill_seconds_total 1\n"
      "hidane_engine_recompute_seconds_total 0\n");
  const auto after = ParseEngineCounters(
      "hidane_engine_busy_seconds_total 11\nhidane_engine_prefill_seconds_total 9\n"
      "hidane_engine_recompute_seconds_total 6\n");
  ASSERT_TRUE(before && after);
  Outcome o = Ok(0, 0, 1, 2);
  o.prompt_tokens = 100;
  o.cached_tokens = 0;
  const std::vector<uint32_t> static_tokens = {75};
  const Shares shares = SharesFromCounters(*after - *before, {&o, 1}, static_tokens);
  EXPECT_DOUBLE_EQ(shares.recompute, 0.6);
  EXPECT_DOUBLE_EQ(shares.static_prefill, 0.8 * 0.75);
  EXPECT_FALSE(ParseEngineCounters("hidane_engine_busy_seconds_total 1\n").has_value());
}

TEST(Shares, StaticTokensAreWhatATenantsRequestsShare) {
  std::vector<Outcome> run = {Ok(0, 0, 1, 2), Ok(0, 0, 1, 2)};
  run[0].prompt_tokens = 130;
  run[1].prompt_tokens = 120;
  EXPECT_EQ(StaticTokens(run, 2, 20), (std::vector<uint32_t>{100, 0}));
}

}  // namespace
}  // namespace hidane::load
