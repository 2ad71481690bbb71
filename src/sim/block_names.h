#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"

namespace hidane::sim {

/// The names of the KV blocks from `first` on that end within a prompt's blocks. A KV block is
/// named by its place and by the chain value of the prompt's block that holds its last token, so
/// chains of any granularity will do.
std::vector<Sha256Digest> NameBlocks(std::span<const uint64_t> chain,
                                     std::span<const uint32_t> ends, uint32_t block_size,
                                     uint64_t first = 0);

}  // namespace hidane::sim
