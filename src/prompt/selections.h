#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace hidane::prompt {

/// For each choice among eight bytes, bit i for byte i: where the chosen ones are, in order. What
/// stands behind them is 0. 2 KiB; the index of a byte shuffle that closes gaps.
inline constexpr auto kSelections = [] {
  std::array<std::array<uint8_t, 8>, 256> all{};
  for (size_t bits = 0; bits < all.size(); ++bits) {
    size_t n = 0;
    for (uint8_t i = 0; i < 8; ++i)
      if ((bits >> i & 1) != 0) all[bits][n++] = i;
  }
  return all;
}();

}  // namespace hidane::prompt
