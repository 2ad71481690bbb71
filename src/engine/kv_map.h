#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"

namespace hidane::engine {

/// Where one sequence's tokens are, for people and tests.
struct KvSequence {
  SeqId id;
  std::string policy = "none";
  bool running = false;  ///< holds blocks
  uint32_t prompt_tokens = 0;
  uint32_t tokens = 0;          ///< of the stream, computed
  uint32_t slots = 0;           ///< active: live tokens, and dead ones not yet won back
  uint32_t blocks = 0;          ///< in its table
  uint32_t blocks_unmoved = 0;  ///< that would hold a live token of some unit, if none had moved
  /// For each stretch of block_size tokens of the stream, the share that lives, in percent, mean
  /// over units.
  std::vector<uint8_t> live;
};

/// A picture of KV memory between two steps.
struct KvMap {
  uint32_t block_size = 0, blocks = 0, blocks_free = 0;
  uint32_t blocks_published = 0;  ///< in the prefix cache, free ones included
  std::vector<KvSequence> sequences{};
};

}  // namespace hidane::engine
