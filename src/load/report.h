#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "load/answer.h"

namespace hidane::load {

/// Nearest-rank percentile, exact: the smallest value that at least `p` of all do not exceed.
/// Sorts `values`; NaN if empty. REQUIRES: 0 < p <= 1.
double Percentile(std::vector<double>& values, double p);

/// TTFT counts from the intended send time in open loop, so that a late generator or a stalled
/// server can't hide waiting (coordinated omission), and from the actual one in closed loop.
double TtftSeconds(const Outcome& outcome, bool open_loop);

/// One result row, contracts section 4. Ratios 0..1; NaN = not known, JSON null.
struct Row {
  std::string policy;
  uint64_t requests = 0, errors = 0;
  double hit_ratio = 0;  ///< cached / prompt tokens, by the engine's own word
  double ttft_p50_s = 0, ttft_p99_s = 0, tpot_p50_s = 0;
  double recompute_share = 0, static_prefill_share = 0;
  bool shares_estimated = false;  ///< from token counts: the engines have no busy-time counters
  double requests_per_s = 0, wall_s = 0;
  std::array<uint64_t, kEnds> ends{};  ///< how many requests ended how
};

/// Counts and percentiles of a run; the shares stay NaN (see shares.h).
Row MakeRow(std::string_view policy, std::span<const Outcome> outcomes, bool open_loop);

/// What a result was made with: contracts section 4, in order of appearance.
using Meta = std::vector<std::pair<std::string, std::string>>;
struct Build {
  std::string version, commit;
};
Meta MakeMeta(const Build& build, std::string tool, uint64_t seed, std::string command);

/// `{"meta":{...},"rows":[...]}` with exactly the contract's keys, then estimated and
/// errors_by_kind.
std::string RowsJson(const Meta& meta, std::span<const Row> rows);

/// A table whose columns line up; estimated shares carry a `~`.
std::string RowsTable(std::span<const Row> rows);

/// TTFT histogram: about `lines` equal-ratio buckets with bars of at most `width` characters.
/// Colour escapes only when `colour`.
std::string TtftHistogram(std::span<const Outcome> outcomes, bool open_loop, size_t width,
                          bool colour);

/// "3 errors: 2 http_5xx, 1 cut (stream ended without [DONE])"; empty without errors.
std::string ErrorLine(const Row& row, std::span<const Outcome> outcomes);

}  // namespace hidane::load
