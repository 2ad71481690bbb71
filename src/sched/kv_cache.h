#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "sched/prefix_index.h"
#include "sched/reuse_odds.h"
#include "vtoken/block_pool.h"
#include "vtoken/block_pool_adapter.h"

namespace hidane::sched {

/// Which cached block is given up first, of those that nobody holds.
enum class Eviction : uint8_t {
  kLru,    ///< the least recently used
  kReuse,  ///< the same, but one that was used again since it was computed counts as younger, by
           ///< how much likelier such blocks are used again than others (ReuseOdds)
};

/// The KV blocks of one engine: the pool that counts their holders and the index that names their
/// contents. A block nobody holds stays published until the pool hands it out again, in the order
/// of Eviction; tables are released leaf first, so a chain is forgotten from its end.
///
/// Invariant: a published block's predecessors are published too, and whoever holds it holds them.
/// It holds as long as callers hold whole prefixes, publish in chain order (after Clear: from the
/// first block on) and unpublish no block before those that follow it. Searches lean on it, until
/// an eviction from the middle of a chain breaks it.
/// Owns no KV memory. One thread.
class KvCache final : public vtoken::BlockPoolAdapter {
 public:
  explicit KvCache(uint32_t blocks, Eviction eviction = Eviction::kLru);

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
  void Take(BlockId block);
  void Evict(BlockId block);

  vtoken::BlockPool pool_;
  PrefixIndex index_;
  Eviction eviction_;
  bool chains_whole_ = true;
  // By block: its contents were taken again after they were computed. While chains are whole,
  // blocks before a proven one are proven, so that they are not given up before it.
  std::vector<bool> proven_;
  ReuseOdds odds_;
};

}  // namespace hidane::sched
