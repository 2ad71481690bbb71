#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

namespace hidane {

/// The lowest `n` bits set; all of them from 64 on.
constexpr uint64_t LowBits(uint32_t n) {
  return n < 64 ? (uint64_t{1} << n) - 1 : ~uint64_t{0};
}

/// Sets bits [first, first + n); bit i is bit i % 64 of word i / 64.
inline void SetBits(std::span<uint64_t> words, uint32_t first, uint32_t n) {
  for (const uint32_t end = first + n; first < end;) {
    const uint32_t width = std::min(64 - first % 64, end - first);
    words[first / 64] |= LowBits(width) << first % 64;
    first += width;
  }
}

}  // namespace hidane
