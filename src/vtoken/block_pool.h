#pragma once
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace hidane::vtoken {

/// Who holds which KV block, and in which order the free ones are used again. Knows nothing of
/// bytes, tokens or hashes.
///
///   Allocate           Release to 0, no pin
///   free list ──> held ───────────────────────> free list      oldest [ . . . . ] newest
///       ^          │  Release to 0, pinned                         ^            ^
///       │          └──> quarantined ──Unpin to 0──> newest      kOldest      kNewest
///       └── Ref takes a free block back by its id (a prefix hit)       [ . . . ] kProven
///
/// Blocks that were used again are listed apart and last longer: of the oldest of either list the
/// one goes first that is older once the proven one's age is divided by `proven_worth`. A block's
/// age is how many were allocated since it was released. At 1 both lists are one, by last use.
///
/// Invariants: each block is in exactly one of held (refs > 0), free (refs = 0, pins = 0),
/// quarantined (refs = 0, pins > 0); only a free block is ever handed out by Allocate.
/// One thread. All calls O(1), no allocation after construction.
class BlockPool {
 public:
  /// Where a block that nobody holds any more enters the free list.
  enum class Reuse : uint8_t {
    kOldest,  ///< its contents are worthless: use it first
    kNewest,  ///< it was in use until now: use it last
    kProven,  ///< so it was, and more than once
  };

  explicit BlockPool(uint32_t blocks);

  /// REQUIRES: worth >= 1.
  void SetProvenWorth(double worth) { proven_worth_ = worth; }

  uint32_t size() const { return static_cast<uint32_t>(blocks_.size()); }
  uint32_t free() const { return free_; }
  /// The block that Allocate would hand out. REQUIRES: free() > 0.
  BlockId oldest_free() const;

  /// The oldest free block, with one reference. kResourceExhausted when none is free.
  Result<BlockId> Allocate();
  // All below: kInvalidArgument when `block` is out of range; nothing is changed on an error.
  Result<uint32_t> RefCount(BlockId block) const {
    if (block.value() >= size()) return Unknown(block);
    return blocks_[block.value()].refs;
  }
  Result<bool> Pinned(BlockId block) const;
  /// One reference more. A free or quarantined block is taken back as it is.
  Status Ref(BlockId block);
  /// One reference less; at zero the block is free, or quarantined while pinned.
  /// kInternal when nobody holds it.
  Status Release(BlockId block, Reuse reuse);
  /// Delays the block's reuse until a matching Unpin; it can be released meanwhile.
  Status Pin(BlockId block);
  /// kInternal when it isn't pinned.
  Status Unpin(BlockId block);

 private:
  struct Block {
    uint32_t refs = 0, pins = 0;
    uint32_t prev = 0, next = 0;   // free list; meaningless unless free
    uint64_t since = 0;            // clock of its release
    Reuse reuse = Reuse::kNewest;  // as it was released last
  };
  struct List {
    uint32_t oldest, newest;  // kNone when it is empty
  };

  tl::unexpected<Error> Unknown(BlockId block) const;
  List& ListOf(const Block& block) { return block.reuse == Reuse::kProven ? proven_ : fresh_; }
  uint64_t Age(uint32_t id) const { return clock_ - blocks_[id].since; }
  void Link(uint32_t id);
  void Unlink(uint32_t id);

  std::vector<Block> blocks_;
  List fresh_, proven_;
  double proven_worth_ = 1;
  uint64_t clock_ = 0;  // blocks allocated
  uint32_t free_ = 0;
};

}  // namespace hidane::vtoken
