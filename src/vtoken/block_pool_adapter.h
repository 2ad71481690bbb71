#pragma once
#include <cstdint>

#include "base/ids.h"
#include "base/result.h"

namespace hidane::vtoken {

/// What vToken needs of its host's block manager: the only place that knows a host engine. Each
/// call may fail: a host is another program's code. One thread, the engine's.
struct BlockPoolAdapter {
  /// Sequences that hold the block; > 1: shared, so never written.
  virtual Result<uint32_t> RefCount(BlockId block) const = 0;
  /// True while a reader beside the sequences needs the bytes (an export, a step in flight).
  virtual Result<bool> Pinned(BlockId block) const = 0;
  /// A block with one reference, contents undefined. kResourceExhausted when none is free.
  virtual Result<BlockId> Allocate() = 0;
  /// One reference more, for a fork.
  virtual Status Retain(BlockId block) = 0;
  /// Gives one reference back.
  virtual Status Release(BlockId block) = 0;
  /// Withdraws the block from the prefix cache, before its bytes change. No-op if it isn't there.
  virtual Status Unpublish(BlockId block) = 0;

 protected:
  ~BlockPoolAdapter() = default;
};

}  // namespace hidane::vtoken
