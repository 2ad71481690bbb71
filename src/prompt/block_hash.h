#pragma once
#include <cstddef>
#include <cstdint>

namespace hidane::prompt {

/// Bytes of the canonical stream that one link of the chain covers.
inline constexpr size_t kChainBlockBytes = 256;

/// The XXH3-64 (seed 0) of each of `count` blocks that lie one behind the other, as Xxh3 gives it.
/// Beside Xxh3 because the library has the vectors of the build's baseline, and does not know the
/// length.
/// Source: the XXH3 algorithm, https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md.
void HashBlocks(const char* blocks, size_t count, uint64_t* hashes);

}  // namespace hidane::prompt
