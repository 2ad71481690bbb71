#pragma once
#include <cstdint>
#include <vector>

namespace hidane::sim {

/// Which class of models the clients use.
enum class ServeGenClass : uint8_t {
  kLarge,  ///< 162 clients, the largest 16 %, 39 make 90 %
  kSmall,  ///< 43 clients, the largest 30 %, 9 make 90 %
};

/// Shares of `tenants` tenants, largest first, with the skew of ServeGen's clients: each covers an
/// equal part of the ranks, so that as many tenants as clients have the clients' shares. Their sum
/// is 1. REQUIRES: tenants > 0.
std::vector<double> ServeGenWeights(ServeGenClass which, uint32_t tenants);

}  // namespace hidane::sim
