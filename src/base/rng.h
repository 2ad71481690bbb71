#pragma once
#include <array>
#include <cstdint>

namespace hidane {

/// Seeded pseudo-random numbers, the same on every compiler: chance comes in by reference.
/// Source: Blackman and Vigna, xoshiro256** 1.0, seeded by SplitMix64.
class Rng {
 public:
  explicit Rng(uint64_t seed);
  uint64_t Next();
  double Unit();                    ///< uniform in [0, 1), 53 bits
  uint64_t Below(uint64_t n);       ///< uniform in [0, n). REQUIRES: n > 0
  double Exponential(double mean);  ///< > 0; for Poisson arrivals. REQUIRES: mean > 0

 private:
  std::array<uint64_t, 4> s_;
};

/// One step of SplitMix64: a good 64-bit mixing of `x`.
uint64_t Mix64(uint64_t x);

}  // namespace hidane
