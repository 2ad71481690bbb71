#include "cli/sim_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/json_out.h"

namespace hidane::cli {
namespace {

using sim::Row;
using Cells = std::vector<std::string>;

struct Column {
  std::string_view title;
  double Row::* value;
  double scale;
  int digits;
  std::string_view unit;
};
constexpr Column kColumns[] = {
    {"requests", &Row::requests, 1, 0, ""},
    {"errors", &Row::errors, 1, 0, ""},
    {"hit", &Row::hit_ratio, 100, 1, " %"},
    {"bound", &Row::hit_ratio_bound, 100, 1, " %"},
    {"TTFT p50", &Row::ttft_p50_s, 1, 3, " s"},
    {"p99", &Row::ttft_p99_s, 1, 3, " s"},
    {"bound", &Row::makespan_bound_s, 1, 2, " s"},
    {"in line", &Row::admission_wait_mean_s, 1, 1, " s"},
    {"p99", &Row::admission_wait_p99_s, 1, 1, " s"},
    {"quantum", &Row::quantum_turns, 1, 0, ""},
    {"fair", &Row::inside_fairness, 1, 2, ""},
    {"static", &Row::static_prefill_share, 100, 1, " %"},
    {"again", &Row::recompute_share, 100, 1, " %"},
    {"good/s", &Row::goodput_rps, 1, 1, ""},
    {"req/s", &Row::requests_per_s, 1, 1, ""},
    {"imbalance", &Row::load_imbalance, 1, 2, ""},
    {"at least", &Row::load_imbalance_bound, 1, 2, ""},
    {"homes", &Row::mean_homes, 1, 1, ""},
    {"in storm", &Row::surge_rps, 1, 1, "/s"},
    {"after", &Row::after_rps, 1, 1, "/s"},
    {"answered", &Row::answered_share, 100, 1, " %"},
    {"sends", &Row::sends_per_request, 1, 2, ""},
    {"refreshes", &Row::refresh_share, 100, 1, " %"},
    {"back after", &Row::recovery_s, 1, 0, " s"},
    {"moved", &Row::keys_moved, 100, 2, " %"},
    {"by loss", &Row::keys_lost, 100, 2, " %"},
    {"decisions/s", &Row::decisions_per_s, 1, 0, ""},
    {"index", &Row::index_bytes, 1e-6, 1, " MB"},
    {"B/entry", &Row::index_bytes_per_entry, 1, 1, ""},
};

std::string Cell(const sim::Summary& s, const Column& c) {
  const double mean = s.mean.*c.value;
  if (std::isnan(mean)) return "-";
  const double half = s.half_width.*c.value;
  const std::string interval =
      std::isnan(half) || half == 0 ? "" : fmt::format(" ±{:.{}f}", half * c.scale, c.digits);
  return fmt::format("{:.{}f}{}{}", mean * c.scale, c.digits, interval, c.unit);
}

Cells LineOf(const sim::Summary& s) {
  const Row& r = s.mean;
  Cells line = {r.fleet,  r.phase,       r.policy, fmt::format("{}", r.gateways),
                r.deltas, r.working_set, r.guard,  r.keep_warm};
  for (const Column& column : kColumns) line.push_back(Cell(s, column));
  return line;
}

/// Columns in display width: `±` is two bytes and one column.
size_t Width(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string Pad(const std::string& text, size_t width, bool left) {
  const std::string space(width - Width(text), ' ');
  return left ? text + space : space + text;
}

constexpr size_t kNames = 8;  // columns that say what ran

bool Shown(const std::vector<Cells>& lines, size_t column) {
  if (column < 3) return true;
  const auto same = [&](std::string_view value) {
    return std::all_of(lines.begin() + 1, lines.end(),
                       [&](const Cells& line) { return line[column] == value; });
  };
  if (column < kNames) return lines.size() < 2 || !same(lines[1][column]);
  return !same("-") && !same("0") && !same("0.0 s");
}

}  // namespace

std::string SimTable(std::span<const sim::Summary> rows) {
  std::vector<Cells> lines = {
      {"fleet", "phase", "policy", "gateways", "deltas", "line", "guard", "kept warm"}};
  for (const Column& column : kColumns) lines[0].emplace_back(column.title);
  for (const sim::Summary& row : rows) lines.push_back(LineOf(row));
  std::vector<size_t> widths(lines[0].size(), 0);
  for (size_t c = 0; c < widths.size(); ++c) {
    if (!Shown(lines, c)) continue;
    for (const Cells& line : lines) widths[c] = std::max(widths[c], Width(line[c]));
  }
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool group = i > 0 && (lines[i][0] != lines[i - 1][0] || lines[i][1] != lines[i - 1][1]);
    if (group) out += '\n';
    std::string line;
    for (size_t c = 0; c < widths.size(); ++c) {
      if (widths[c] == 0) continue;
      if (!line.empty()) line += "  ";
      line += Pad(lines[i][c], widths[c], c < 3);
    }
    out += line + '\n';
  }
  return out;
}

std::string SimJson(std::string_view meta, std::span<const sim::Summary> rows) {
  JsonWriter w;
  w.BeginObject().Key("meta").Raw(meta).Key("rows").BeginArray();
  for (const sim::Summary& row : rows) AppendJson(row, w);
  w.EndArray().EndObject();
  return w.Take();
}

}  // namespace hidane::cli
