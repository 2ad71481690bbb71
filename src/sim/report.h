#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "base/json_out.h"
#include "sim/row.h"
#include "sim/simulation.h"

namespace hidane::sim {

/// The page of `hidane sim --html`: one HTML file that needs no network. Its look and its charts
/// are report.html, report.css, report_charts.js and report.js; this class gives them the numbers,
/// as JSON inside the page. A page of up to kRuns runs stays under 3 MB whatever the fleet's
/// size and the runs' length; longer and larger runs are drawn coarser.
class HtmlReport {
 public:
  static constexpr Duration kSeriesStep = std::chrono::seconds(1);  ///< for Setup::series_step
  static constexpr size_t kRuns = 500;

  /// `runs`: how many Add will bring; the more, the coarser each is drawn.
  explicit HtmlReport(size_t runs);

  /// A row of the table, and the run behind it (the first of several). Runs past kRuns get their
  /// table row only.
  void Add(const Summary& summary, const Run& run);

  /// The page. `meta` is the JSON object of result documents (contract: tool, version, command...).
  std::string Page(std::string_view meta);

 private:
  void AppendRun(const Run& run);

  size_t cells_;  // of a heat map
  size_t added_ = 0;
  JsonWriter runs_;
};

}  // namespace hidane::sim
