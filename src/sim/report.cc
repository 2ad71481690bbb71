#include "sim/report.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sim/report_page.h"  // made from report.html and its parts
#include "sim/report_series.h"

namespace hidane::sim {
namespace {

// A heat map's cell costs at most four bytes, and a run has three heat maps.
constexpr size_t kPageCells = 120'000;
constexpr size_t kCellsMax = 2'000;  // of a heat map
constexpr size_t kPointsMin = 30, kPointsMax = 120;
constexpr size_t kHitPointsMax = 60;     // fewer, so that chance shows less
constexpr uint32_t kHitRequestsMin = 5;  // of a point: fewer say nothing

/// Three decimals: as much as a chart shows.
double Short(double value) {
  return std::round(value * 1'000) / 1'000;
}

/// Four figures: for a logarithmic axis.
double Short4(double value) {
  if (!(value > 0)) return 0;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 3);
  return std::round(value / unit) * unit;
}

void AppendMap(const Series& series, size_t rows, std::vector<float> Series::Point::* shares,
               JsonWriter& out) {
  out.BeginArray();
  for (const Series::Point& point : series.points) {
    out.BeginArray();
    for (const float share : GroupWorkers(point.*shares, rows)) {
      out.Number(std::clamp<int64_t>(std::lround(share * 100), 0, 999));
    }
    out.EndArray();
  }
  out.EndArray();
}

void AppendHits(const Series& series, JsonWriter& out) {
  out.Field("hit_step_s", Seconds(series.step)).Key("hit").BeginArray();
  for (const Series::Point& p : series.points) {
    const auto prompt = static_cast<double>(p.prompt_tokens);
    const double ratio = Short(static_cast<double>(p.cached_tokens) / prompt);
    out.Number(p.finished >= kHitRequestsMin ? ratio : kUnknown);
  }
  out.EndArray();
}

void AppendPlan(const FleetPlan& plan, JsonWriter& out) {
  const auto event = [&](TimePoint at, const std::string& what) {
    out.BeginObject().Field("t", Seconds(at)).Field("what", what).EndObject();
  };
  out.BeginArray();
  for (const FleetPlan::Loss& loss : plan.losses) {
    const std::string replica = "replica " + std::to_string(loss.worker);
    event(loss.at, replica + " lost");
    event(loss.at + loss.down, replica + " back");
  }
  if (plan.upgrade) event(plan.upgrade->at, "upgrade begins");
  out.EndArray();
}

/// `text` with the first `mark` replaced.
void Fill(std::string& text, std::string_view mark, std::string_view with) {
  text.replace(text.find(mark), mark.size(), with);
}

}  // namespace

HtmlReport::HtmlReport(size_t runs)
    : cells_(std::min(kPageCells / std::clamp<size_t>(runs, 1, kRuns), kCellsMax)) {
  runs_.BeginArray();
}

void HtmlReport::Add(const Summary& summary, const Run& run) {
  runs_.BeginObject().Key("row");
  AppendJson(summary, runs_);
  if (added_++ < kRuns) AppendRun(run);
  runs_.EndObject();
}

void HtmlReport::AppendRun(const Run& run) {
  const size_t replicas = run.series.points.empty() ? 0 : run.series.points[0].kv_held.size();
  const size_t rows = std::clamp<size_t>(replicas, 1, cells_ / kPointsMin);
  const Series series = Thin(run.series, std::min(kPointsMax, cells_ / rows));
  runs_.Field("step_s", Seconds(series.step)).Field("replicas", replicas);
  runs_.Key("ttft").BeginArray();
  for (const double ttft : Percentiles(run.ttft_s)) runs_.Number(Short4(ttft));
  runs_.EndArray();
  AppendHits(Thin(run.series, kHitPointsMax), runs_);
  AppendMap(series, rows, &Series::Point::kv_held, runs_.Key("held"));
  AppendMap(series, rows, &Series::Point::kv_cached, runs_.Key("cached"));
  AppendMap(series, rows, &Series::Point::assigned, runs_.Key("assigned"));
  AppendPlan(run.plan, runs_.Key("events"));
}

std::string HtmlReport::Page(std::string_view meta) {
  runs_.EndArray();
  JsonWriter data;
  data.BeginObject().Key("meta").Raw(meta).Key("runs").Raw(runs_.Take()).EndObject();
  runs_.BeginArray();
  // A script element ends at the first "</script", wherever it stands; "<" occurs in strings only.
  std::string safe;
  for (const char c : data.Take()) c == '<' ? safe += "\\u003c" : safe += c;
  std::string page(kReportHtml);
  Fill(page, "/*report.css*/", kReportCss);
  Fill(page, "/*report_charts.js*/", kReportChartsJs);
  Fill(page, "/*report.js*/", kReportJs);
  Fill(page, "{/*data*/}", safe);
  return page;
}

}  // namespace hidane::sim
