#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "sim/series.h"

namespace hidane::sim {

/// `series` in at most `points` points, each made of equally many neighbours: counts are sums,
/// TTFT the mean and the largest, the fleet's shares means. REQUIRES: points > 0.
Series Thin(const Series& series, size_t points);

/// `shares` of workers in at most `rows` rows, each the mean of equally many neighbours.
/// REQUIRES: rows > 0.
std::vector<float> GroupWorkers(std::span<const float> shares, size_t rows);

/// Nearest-rank quantiles of ascending values at 0, 1, ... 99, 99.5, 99.9 and 100 %; empty for
/// none.
std::vector<double> Percentiles(std::span<const double> ascending);

}  // namespace hidane::sim
