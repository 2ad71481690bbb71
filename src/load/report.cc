#include "load/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json_out.h"

namespace hidane::load {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

std::vector<double> TtftsOf(std::span<const Outcome> outcomes, bool open_loop) {
  std::vector<double> ttfts;
  for (const Outcome& o : outcomes) {
    if (o.ok() && o.first > Duration{0}) ttfts.push_back(TtftSeconds(o, open_loop));
  }
  return ttfts;
}

std::string Cell(double value, std::string_view unit, int digits) {
  return std::isnan(value) ? "-" : fmt::format("{:.{}f}{}", value, digits, unit);
}

std::string Percent(double ratio, bool estimated = false) {
  return std::isnan(ratio) ? "-" : fmt::format("{}{:.1f} %", estimated ? "~" : "", ratio * 100);
}

using Line = std::vector<std::string>;

Line CellsOf(const Row& r) {
  return {r.policy,
          fmt::format("{}", r.requests),
          fmt::format("{}", r.errors),
          Percent(r.hit_ratio),
          Cell(r.ttft_p50_s, " s", 3),
          Cell(r.ttft_p99_s, " s", 3),
          Cell(r.tpot_p50_s * 1e3, " ms", 1),
          Percent(r.recompute_share, r.shares_estimated),
          Percent(r.static_prefill_share, r.shares_estimated),
          Cell(r.requests_per_s, "", 2),
          Cell(r.wall_s, " s", 1)};
}

}  // namespace

double Percentile(std::vector<double>& values, double p) {
  if (values.empty()) return kUnknown;
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(std::ceil(p * static_cast<double>(values.size())));
  return values[std::clamp<size_t>(rank, 1, values.size()) - 1];
}

double TtftSeconds(const Outcome& outcome, bool open_loop) {
  return Seconds(outcome.first - (open_loop ? outcome.intended : outcome.sent));
}

Row MakeRow(std::string_view policy, std::span<const Outcome> outcomes, bool open_loop) {
  Row row{
      .policy = std::string(policy), .recompute_share = kUnknown, .static_prefill_share = kUnknown};
  uint64_t prompt = 0, cached = 0, usages = 0;
  Duration begin = Duration::max(), end{0};
  std::vector<double> tpots;
  for (const Outcome& o : outcomes) {
    ++row.requests;
    ++row.ends[static_cast<size_t>(o.end)];
    begin = std::min(begin, open_loop ? o.intended : o.sent);
    end = std::max(end, o.done);
    if (!o.ok()) {
      ++row.errors;
      continue;
    }
    usages += o.usage_seen;
    prompt += o.prompt_tokens;
    cached += o.cached_tokens;
    if (o.completion_tokens > 1) {
      tpots.push_back(Seconds(o.last - o.first) / (o.completion_tokens - 1));
    }
  }
  std::vector<double> ttfts = TtftsOf(outcomes, open_loop);
  row.hit_ratio = usages > 0 && prompt > 0 ? static_cast<double>(cached) / prompt : kUnknown;
  row.ttft_p50_s = Percentile(ttfts, 0.50);
  row.ttft_p99_s = Percentile(ttfts, 0.99);
  row.tpot_p50_s = Percentile(tpots, 0.50);
  row.wall_s = row.requests > 0 ? Seconds(end - begin) : 0;
  row.requests_per_s = row.wall_s > 0 ? (row.requests - row.errors) / row.wall_s : kUnknown;
  return row;
}

std::string RowsJson(const Meta& meta, std::span<const Row> rows) {
  JsonWriter w;
  w.BeginObject().Key("meta").BeginObject();
  for (const auto& [key, value] : meta) {
    // The seed is a number, all else text.
    key == "seed" ? w.Key(key).Raw(value) : w.Field(key, value);
  }
  w.EndObject().Key("rows").BeginArray();
  for (const Row& r : rows) {
    w.BeginObject().Field("policy", r.policy);
    w.Field("requests", r.requests).Field("errors", r.errors).Field("hit_ratio", r.hit_ratio);
    w.Field("ttft_p50_s", r.ttft_p50_s).Field("ttft_p99_s", r.ttft_p99_s);
    w.Field("tpot_p50_s", r.tpot_p50_s).Field("recompute_share", r.recompute_share);
    w.Field("static_prefill_share", r.static_prefill_share);
    w.Field("requests_per_s", r.requests_per_s).Field("wall_s", r.wall_s);
    w.Field("estimated", r.shares_estimated).Key("errors_by_kind").BeginObject();
    for (size_t end = 1; end < kEnds; ++end) {
      if (r.ends[end] > 0) w.Field(Name(static_cast<End>(end)), r.ends[end]);
    }
    w.EndObject().EndObject();
  }
  w.EndArray().EndObject();
  return w.Take();
}

std::string RowsTable(std::span<const Row> rows) {
  std::vector<Line> lines = {{"policy", "requests", "errors", "hit", "TTFT p50", "TTFT p99", "TPOT",
                              "recompute", "static", "requests/s", "wall"}};
  for (const Row& row : rows) lines.push_back(CellsOf(row));
  std::vector<size_t> widths(lines[0].size(), 0);
  for (const Line& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out;
  for (const Line& line : lines) {
    out += fmt::format("{:<{}}", line[0], widths[0]);
    for (size_t i = 1; i < line.size(); ++i) out += fmt::format("  {:>{}}", line[i], widths[i]);
    out += '\n';
  }
  return out;
}

std::string TtftHistogram(std::span<const Outcome> outcomes, bool open_loop, size_t width,
                          bool colour) {
  const std::vector<double> ttfts = TtftsOf(outcomes, open_loop);
  if (ttfts.empty()) return "";
  // Buckets double from a millisecond; only those between the least and the most are shown.
  constexpr int kBuckets = 20;
  std::array<size_t, kBuckets> counts{};
  for (const double ttft : ttfts) {
    const int bucket = static_cast<int>(std::ceil(std::log2(std::max(ttft, 1e-3) / 1e-3)));
    ++counts[std::clamp(bucket, 0, kBuckets - 1)];
  }
  const size_t most = *std::max_element(counts.begin(), counts.end());
  const auto nonzero = [](size_t n) { return n > 0; };
  const auto first = std::find_if(counts.begin(), counts.end(), nonzero) - counts.begin();
  const auto last =
      kBuckets - 1 - (std::find_if(counts.rbegin(), counts.rend(), nonzero) - counts.rbegin());
  std::string out;
  for (auto i = first; i <= last; ++i) {
    const size_t bar = (counts[i] * width + most - 1) / most;
    out += fmt::format("  <= {:>8.3f} s {:>6}  {}{}{}\n", std::ldexp(1e-3, static_cast<int>(i)),
                       counts[i], colour ? "\x1b[36m" : "", std::string(bar, '#'),
                       colour ? "\x1b[0m" : "");
  }
  return out;
}

std::string ErrorLine(const Row& row, std::span<const Outcome> outcomes) {
  if (row.errors == 0) return "";
  std::string out = fmt::format("{} error{}:", row.errors, row.errors == 1 ? "" : "s");
  for (size_t end = 1; end < kEnds; ++end) {
    if (row.ends[end] == 0) continue;
    const auto example = std::find_if(outcomes.begin(), outcomes.end(), [&](const Outcome& o) {
      return static_cast<size_t>(o.end) == end;
    });
    out += fmt::format(" {} {}", row.ends[end], Name(static_cast<End>(end)));
    if (example != outcomes.end() && !example->detail.empty()) {
      out += fmt::format(" ({})", example->detail);
    }
    out += ',';
  }
  out.back() = '\n';
  return out;
}

}  // namespace hidane::load
