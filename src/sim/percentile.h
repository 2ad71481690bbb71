#pragma once
#include <vector>

namespace hidane::sim {

/// Nearest-rank percentile, exact: the least value that at least `p` of all do not exceed.
/// Reorders `values`; NaN if empty. REQUIRES: 0 < p <= 1. Cost: O(n).
double Percentile(std::vector<double>& values, double p);

/// NaN if empty.
double Mean(const std::vector<double>& values);

}  // namespace hidane::sim
