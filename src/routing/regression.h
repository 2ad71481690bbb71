#pragma once
#include <algorithm>
#include <array>
#include <cstddef>

namespace hidane::routing {

/// y = theta . x, learned sample by sample: recursive least squares on relative errors, so that
/// small y count as much as large ones. Old samples fade; an outlier counts as twice the
/// prediction at most; theta stays >= 0, by projection. Sources: Haykin, "Adaptive Filter Theory",
/// chapter 9; Simon and Chia, IEEE Trans. Aerospace and Electronic Systems 38(1), 2002. O(N^2) per
/// sample. Not thread-safe.
template <size_t N>
class Regression {
 public:
  using Vector = std::array<double, N>;

  /// Starts at `theta`, each term off by about `deviation`.
  Regression(const Vector& theta, const Vector& deviation) : theta_(theta), start_(deviation) {
    for (size_t i = 0; i < N; ++i) covariance_[i][i] = deviation[i] * deviation[i];
  }

  double Predict(const Vector& x) const {
    double y = 0;
    for (size_t i = 0; i < N; ++i) y += theta_[i] * x[i];
    return std::max(y, kLeast);
  }

  void Observe(const Vector& x, double y) {
    const double predicted = Predict(x);
    const double error = std::min(y / predicted - 1, kErrorMax);
    Vector scaled;
    for (size_t i = 0; i < N; ++i) scaled[i] = x[i] / predicted;
    const Vector spread = Times(scaled);
    double variance = kNoise * kNoise;
    for (size_t i = 0; i < N; ++i) variance += scaled[i] * spread[i];
    for (size_t i = 0; i < N; ++i) {
      theta_[i] += spread[i] / variance * error;
      for (size_t j = 0; j < N; ++j) {
        // Far off: it was surer than it should be.
        covariance_[i][j] *= error == kErrorMax ? 2 : 1;
        covariance_[i][j] -= error == kErrorMax ? 0 : spread[i] * spread[j] / variance;
      }
    }
    for (size_t i = 0; i < N; ++i) Raise(i);
    for (double& t : theta_) t = std::max(0.0, t);  // of what raising another one lowered
    Forget();
  }

 private:
  static constexpr double kLeast = 1e-6;
  static constexpr double kErrorMax = 1;
  static constexpr double kNoise = 0.3;    // relative, of a sample
  static constexpr double kForget = 0.99;  // per sample

  Vector Times(const Vector& x) const {
    Vector out{};
    for (size_t i = 0; i < N; ++i) {
      for (size_t j = 0; j < N; ++j) out[i] += covariance_[i][j] * x[j];
    }
    return out;
  }

  // A term below 0 becomes 0, and the others what they most likely are then. Cut off alone it would
  // leave them where they made up for it, and each further sample would drive them farther off.
  void Raise(size_t i) {
    if (theta_[i] >= 0 || covariance_[i][i] <= 0) return;
    const double up = -theta_[i] / covariance_[i][i];
    for (size_t j = 0; j < N; ++j) theta_[j] += covariance_[j][i] * up;
  }

  // Not beyond the start: what no sample shows for long must not become a guess.
  void Forget() {
    for (size_t i = 0; i < N; ++i) {
      if (covariance_[i][i] > start_[i] * start_[i]) return;
    }
    for (auto& row : covariance_) {
      for (double& c : row) c /= kForget;
    }
  }

  Vector theta_;
  Vector start_;
  std::array<Vector, N> covariance_{};
};

}  // namespace hidane::routing
