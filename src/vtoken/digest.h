#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/rng.h"

namespace hidane::vtoken {

/// A 64-bit digest of bytes, against accidents, not against forgers. Beside base's hashes so that
/// the embeddable library needs no cryptography. About 8 bytes per multiplication chain.
inline uint64_t Digest(std::span<const std::byte> bytes, uint64_t seed = 0) {
  uint64_t digest = Mix64(seed ^ bytes.size());
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, bytes.size() - at < 8 ? bytes.size() - at : 8);
    digest = Mix64(digest ^ word);
  }
  return digest;
}

}  // namespace hidane::vtoken
