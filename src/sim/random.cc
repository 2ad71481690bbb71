#include "sim/random.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace hidane::sim {

Weighted::Weighted(std::span<const double> weights) {
  HIDANE_ASSERT(!weights.empty());
  double sum = 0;
  for (const double w : weights) cumulative_.push_back(sum += w);
  HIDANE_ASSERT(sum > 0);
}

uint32_t Weighted::Draw(Rng& rng) const {
  const double u = rng.Unit() * cumulative_.back();
  const auto it = std::upper_bound(cumulative_.begin(), cumulative_.end(), u);
  return std::min(static_cast<uint32_t>(it - cumulative_.begin()), size() - 1);
}

double Weighted::Share(uint32_t i) const {
  HIDANE_ASSERT(i < size());
  return (cumulative_[i] - (i == 0 ? 0.0 : cumulative_[i - 1])) / cumulative_.back();
}

std::vector<double> ZipfWeights(uint32_t n, double s) {
  std::vector<double> weights(n);
  for (uint32_t i = 0; i < n; ++i) weights[i] = std::pow(i + 1.0, -s);
  return weights;
}

double AtQuantile(std::span<const Quantile> points, double u) {
  HIDANE_ASSERT(points.size() >= 2 && points.front().p == 0 && points.back().p == 1);
  size_t hi = 1;
  while (hi + 1 < points.size() && points[hi].p < u) ++hi;
  const Quantile &a = points[hi - 1], &b = points[hi];
  return a.value + (b.value - a.value) * ((u - a.p) / (b.p - a.p));
}

double MeanOf(std::span<const Quantile> points) {
  double sum = 0;
  for (size_t i = 1; i < points.size(); ++i) {
    sum += (points[i].p - points[i - 1].p) * (points[i].value + points[i - 1].value) / 2;
  }
  return sum;
}

double DrawNormal(Rng& rng) {
  for (;;) {
    const double x = 2 * rng.Unit() - 1, y = 2 * rng.Unit() - 1;
    const double r = x * x + y * y;
    if (r > 0 && r < 1) return x * std::sqrt(-2 * std::log(r) / r);
  }
}

double DrawLogNormal(Rng& rng, double median, double sigma) {
  return median * std::exp(sigma * DrawNormal(rng));
}

double DrawGamma(Rng& rng, double shape, double scale) {
  HIDANE_ASSERT(shape > 0 && scale > 0);
  if (shape < 1) {  // Gamma(a) is distributed as Gamma(a + 1) U^(1/a)
    const double larger = DrawGamma(rng, shape + 1, scale);
    return larger * std::pow(1 - rng.Unit(), 1 / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = DrawNormal(rng);
    const double t = 1 + c * x, v = t * t * t;
    if (v <= 0) continue;
    if (std::log(1 - rng.Unit()) < x * x / 2 + d * (1 - v + std::log(v))) return d * v * scale;
  }
}

double DrawWeibull(Rng& rng, double shape, double scale) {
  HIDANE_ASSERT(shape > 0 && scale > 0);
  return scale * std::pow(-std::log1p(-rng.Unit()), 1 / shape);
}

}  // namespace hidane::sim
