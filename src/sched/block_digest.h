#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"

namespace hidane::sched {

/// For tables keyed by digest: its first bytes are as good as random.
struct DigestHash {
  using is_avalanching = void;
  size_t operator()(const Sha256Digest& digest) const noexcept {
    size_t h;
    std::memcpy(&h, digest.data(), sizeof h);
    return h;
  }
};

/// Equality without a call to memcmp.
struct DigestEqual {
  bool operator()(const Sha256Digest& a, const Sha256Digest& b) const noexcept {
    uint64_t x[4], y[4];
    std::memcpy(x, a.data(), sizeof x);
    std::memcpy(y, b.data(), sizeof y);
    return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3])) == 0;
  }
};

/// Names KV blocks by content: SHA-256(digest of the block before it, its tokens as 32-bit little
/// endian, salt). Equal digests therefore mean equal K/V: the same tokens after the same tokens,
/// for the same salt. The first block's parent is 32 zero bytes.
/// Cost: about 100 ns a block of 16. One thread.
class BlockDigester {
 public:
  /// The names of the full blocks of `tokens`, a sequence from its start.
  std::vector<Sha256Digest> Chain(std::span<const TokenId> tokens, uint32_t block_size,
                                  std::string_view salt);
  /// The name of the block of `tokens` that follows the blocks of `chain`.
  Sha256Digest Next(std::span<const Sha256Digest> chain, std::span<const TokenId> tokens,
                    std::string_view salt);

 private:
  Sha256 sha_;
};

}  // namespace hidane::sched
