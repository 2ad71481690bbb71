#pragma once
#include <cstdint>
#include <span>

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "sched/prefix_index.h"
#include "vtoken/block_pool.h"
#include "vtoken/block_pool_adapter.h"

namespace hidane::sched {

/// The KV blocks of one engine: the pool that counts their holders and the index that names their
/// contents. A block nobody holds stays published until the pool hands it out again, oldest use
/// first; tables are released leaf first, so a chain is forgotten from its end.
///
/// Invariant: a published block's predecessors are published too, and whoever holds it holds them.
/// It holds as long as callers hold whole prefixes, publish in chain order (after Clear: from the
/// first block on) and unpublish no block before those that follow it. Searches lean on it, until
/// an eviction from the middle of a chain breaks it.
/// Owns no KV memory. One thread.
class KvCache final : public vtoken::BlockPoolAdapter {
 public:
  explicit KvCache(uint32_t blocks) : pool_(blocks), index_(blocks) {}

  struct Hit {
    uint32_t blocks = 0;  ///< length of the longest published prefix
    uint32_t free = 0;    ///< how many of these nobody holds
  };
  /// Reads only: a look is no use and changes no block's age. O(log chain), O(hit) after an
  /// eviction.
  Hit Find(std::span<const Sha256Digest> chain) const;
  /// Takes one reference to the block of each digest. REQUIRES: Find(chain).blocks == chain.size().
  void Hold(std::span<const Sha256Digest> chain, std::vector<BlockId>& table);
  /// Publishes `block` as the contents `digest`. If another block already stands for them,
  /// `block` is released and that one, with a reference more, is returned instead.
  /// REQUIRES: the caller holds `block` and it won't change as long as it is published.
  BlockId Publish(const Sha256Digest& digest, BlockId block);
  /// Releases a whole block table, last block first.
  void ReleaseTable(std::span<const BlockId> table);
  /// Forgets all contents. Held blocks stay held.
  void Clear();
  /// Blocks were unpublished or released in any order: from here on a block may be published whose
  /// predecessor is not. It is no hit before that one is back.
  void BreakChains() { chains_whole_ = false; }

  uint32_t blocks() const { return pool_.size(); }
  uint32_t blocks_free() const { return pool_.free(); }
  uint32_t blocks_published() const { return index_.size(); }

  Result<uint32_t> RefCount(BlockId block) const override { return pool_.RefCount(block); }
  Result<bool> Pinned(BlockId block) const override { return pool_.Pinned(block); }
  Result<BlockId> Allocate() override;
  Status Retain(BlockId block) override { return pool_.Ref(block); }
  Status Release(BlockId block) override;
  Status Unpublish(BlockId block) override;

 private:
  Hit Walk(std::span<const Sha256Digest> chain) const;

  vtoken::BlockPool pool_;
  PrefixIndex index_;
  bool chains_whole_ = true;
};

}  // namespace hidane::sched
