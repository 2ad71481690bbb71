#include "sim/report_series.h"

#include <algorithm>

#include "base/assert.h"

namespace hidane::sim {
namespace {

size_t CeilDiv(size_t a, size_t b) {
  return (a + b - 1) / b;
}

void AddShares(const std::vector<float>& from, float weight, std::vector<float>& to) {
  if (to.size() < from.size()) to.resize(from.size());
  for (size_t w = 0; w < from.size(); ++w) to[w] += from[w] * weight;
}

Series::Point Merge(std::span<const Series::Point> points) {
  Series::Point sum;
  double ttft = 0;
  size_t samples = 0;
  for (const Series::Point& p : points) {
    sum.finished += p.finished;
    sum.failed += p.failed;
    sum.prompt_tokens += p.prompt_tokens;
    sum.cached_tokens += p.cached_tokens;
    ttft += p.ttft_mean_s * p.finished;
    sum.ttft_max_s = std::max(sum.ttft_max_s, p.ttft_max_s);
    samples += !p.kv_held.empty();
  }
  if (sum.finished > 0) sum.ttft_mean_s = ttft / sum.finished;
  for (const Series::Point& p : points) {
    const float weight = samples > 0 ? 1.0f / static_cast<float>(samples) : 0;
    AddShares(p.kv_held, weight, sum.kv_held);
    AddShares(p.kv_cached, weight, sum.kv_cached);
    AddShares(p.assigned, weight, sum.assigned);
  }
  return sum;
}

}  // namespace

Series Thin(const Series& series, size_t points) {
  HIDANE_ASSERT(points > 0);
  const size_t each = std::max<size_t>(1, CeilDiv(series.points.size(), points));
  Series thin{.step = series.step * static_cast<int64_t>(each), .points = {}};
  for (size_t i = 0; i < series.points.size(); i += each) {
    const size_t n = std::min(each, series.points.size() - i);
    thin.points.push_back(Merge(std::span(series.points).subspan(i, n)));
  }
  return thin;
}

std::vector<float> GroupWorkers(std::span<const float> shares, size_t rows) {
  HIDANE_ASSERT(rows > 0);
  const size_t each = std::max<size_t>(1, CeilDiv(shares.size(), rows));
  std::vector<float> grouped;
  for (size_t i = 0; i < shares.size(); i += each) {
    const size_t n = std::min(each, shares.size() - i);
    float sum = 0;
    for (size_t w = i; w < i + n; ++w) sum += shares[w];
    grouped.push_back(sum / static_cast<float>(n));
  }
  return grouped;
}

std::vector<double> Percentiles(std::span<const double> ascending) {
  if (ascending.empty()) return {};
  std::vector<double> values;
  const auto add = [&](size_t permille) {
    const size_t rank = std::max<size_t>(1, CeilDiv(permille * ascending.size(), 1'000));
    values.push_back(ascending[rank - 1]);
  };
  for (size_t permille = 0; permille < 1'000; permille += 10) add(permille);
  for (const size_t permille : {995, 999, 1'000}) add(permille);
  return values;
}

}  // namespace hidane::sim
