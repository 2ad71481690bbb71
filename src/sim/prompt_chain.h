#pragma once
#include <cstdint>

#include "prompt/identity.h"

namespace hidane::sim {

/// Tokens that one link of a made-up prompt's chain covers.
inline constexpr uint32_t kChainTokens = 256;

/// Appends a part of `tokens` to a prompt whose extents are tokens, and keeps `prompt.tokens` up
/// to date. Parts with equal `content` after equal beginnings are equal. Marks are the caller's.
void AppendTokens(uint64_t content, uint32_t tokens, prompt::Identity& prompt);

}  // namespace hidane::sim
