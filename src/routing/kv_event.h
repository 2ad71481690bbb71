#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "routing/cache_index.h"

namespace hidane::routing {

/// What an engine says of its prefix cache, in the fields of vLLM's and SGLang's KV events
/// (BlockStored, BlockRemoved, AllBlocksCleared). A view: it owns nothing.
///
/// Blocks are named by chain value (prompt::Identity::chain): block i of a prompt is chain[i].
/// Who reads events from an engine that names blocks by hashes of its own maps them first.
struct KvEvent {
  enum class Kind : uint8_t { kStored, kRemoved, kCleared };
  Kind kind = Kind::kStored;
  std::span<const uint64_t> blocks{};
  std::optional<uint64_t> parent{};  ///< of blocks[0], stored only; none: the prompt's beginning
  uint32_t block_tokens = 0;         ///< tokens a block holds, stored only
  std::string_view medium{};         ///< tier, `GPU` where empty; others are not looked at
};

/// Corrects what is believed of a worker by the events that it published, in their order.
/// Removed: no block named is believed afterwards, nor can a match reach what hung behind it.
/// Cleared: nothing is; then it returns true. Stored: confirms what was believed since it was
/// routed, and adds nothing. Cost: one pass over the index for each run of removals between two
/// clearings, however many blocks they name; so hand over whole batches.
bool Apply(std::span<const KvEvent> events, CacheIndex& index);

}  // namespace hidane::routing
