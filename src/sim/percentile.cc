#include "sim/percentile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace hidane::sim {

double Percentile(std::vector<double>& values, double p) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto n = static_cast<double>(values.size());
  const auto rank = std::clamp<size_t>(static_cast<size_t>(std::ceil(p * n)), 1, values.size());
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double Mean(const std::vector<double>& values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace hidane::sim
