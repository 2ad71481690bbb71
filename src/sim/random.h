#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"

namespace hidane::sim {

/// Draws indexes by weight. The same on every compiler: one Rng step and a binary search.
class Weighted {
 public:
  /// REQUIRES: at least one weight, all >= 0, their sum > 0.
  explicit Weighted(std::span<const double> weights);
  uint32_t Draw(Rng& rng) const;   ///< in [0, size())
  double Share(uint32_t i) const;  ///< the probability of `i`
  uint32_t size() const { return static_cast<uint32_t>(cumulative_.size()); }

 private:
  std::vector<double> cumulative_;
};

/// Weights of Zipf's law: (i + 1)^-s for i in [0, n). s = 0 is uniform.
std::vector<double> ZipfWeights(uint32_t n, double s);

/// A point of a distribution: `value` at probability `p`.
struct Quantile {
  double p;
  double value;
};

/// The value at probability `u` of a distribution known by quantiles, straight lines between them.
/// REQUIRES: points in order of p and of value, the first at p = 0, the last at p = 1; u in [0, 1].
double AtQuantile(std::span<const Quantile> points, double u);
/// Its mean.
double MeanOf(std::span<const Quantile> points);

/// Standard normal. Source: Marsaglia and Bray (1964), the polar method.
double DrawNormal(Rng& rng);
/// exp(normal): `median` > 0, `sigma` >= 0 of the logarithm.
double DrawLogNormal(Rng& rng, double median, double sigma);
/// Mean shape * scale. REQUIRES: both > 0. Source: Marsaglia and Tsang (2000).
double DrawGamma(Rng& rng, double shape, double scale);
/// REQUIRES: both > 0.
double DrawWeibull(Rng& rng, double shape, double scale);

}  // namespace hidane::sim
