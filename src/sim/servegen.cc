#include "sim/servegen.h"

#include <algorithm>
#include <span>

#include "base/assert.h"
#include "sim/servegen_table.h"

namespace hidane::sim {
namespace {

/// Share of the first `ranks` clients, a part of one counted as that part.
double ShareOfFirst(std::span<const double> shares, double ranks) {
  double sum = 0;
  for (const double share : shares) {
    if (ranks <= 0) break;
    sum += share * std::min(ranks, 1.0);
    ranks -= 1;
  }
  return sum;
}

}  // namespace

std::vector<double> ServeGenWeights(ServeGenClass which, uint32_t tenants) {
  HIDANE_ASSERT(tenants > 0);
  const auto shares = which == ServeGenClass::kLarge ? std::span<const double>(servegen::kLarge)
                                                     : std::span<const double>(servegen::kSmall);
  const double all = ShareOfFirst(shares, static_cast<double>(shares.size()));
  const double ranks = static_cast<double>(shares.size()) / tenants;
  std::vector<double> weights;
  double before = 0;
  for (uint32_t i = 1; i <= tenants; ++i) {
    const double upto = ShareOfFirst(shares, ranks * i) / all;
    weights.push_back(upto - before);
    before = upto;
  }
  return weights;
}

}  // namespace hidane::sim
