#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "prompt/block_hash.h"
#include "prompt/identity.h"

namespace hidane::prompt {

/// The chain's value before the first block.
uint64_t ChainRoot(uint64_t salt, std::string_view model);

/// Appends one part to the chain: its blocks of kChainBlockBytes, the last one shorter. Each
/// block is hashed on its own and then linked, so that hashing need not wait for the parts
/// before it: h[i] = mix(h[i-1] xor XXH3(block i)).
void AppendPart(std::string_view part, Identity& identity);

}  // namespace hidane::prompt
