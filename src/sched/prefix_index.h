#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "sched/block_digest.h"

namespace hidane::sched {

/// Which block holds the K/V of which content: digest -> block, at most one of each.
/// Says nothing of who holds the block; a published block may lie free until it is used anew.
/// A hash table of block numbers beside the digests by block: what a chain looks up lies in
/// memory as its blocks were allocated, mostly in a row. No allocation after construction.
class PrefixIndex {
 public:
  /// REQUIRES: every block id passed later is < blocks.
  explicit PrefixIndex(uint32_t blocks);

  std::optional<BlockId> Find(const Sha256Digest& digest) const;
  bool Contains(BlockId block) const { return published_[block.value()]; }
  /// The block that stands for `digest` from now on: `block`, or the one published before it.
  /// REQUIRES: `block` isn't published under another digest.
  BlockId Publish(const Sha256Digest& digest, BlockId block);
  void Unpublish(BlockId block);  ///< no-op if it isn't published
  void Clear();
  uint32_t size() const { return size_; }

 private:
  // Open addressing with linear probing: from a digest's home on, no empty slot before its own.
  struct Slot {
    uint32_t tag = 0;  // of the block's digest
    uint32_t block = UINT32_MAX;
    bool empty() const { return block == UINT32_MAX; }
  };

  static uint32_t Tag(const Sha256Digest& d) { return static_cast<uint32_t>(DigestHash()(d)); }
  size_t Next(size_t at) const { return (at + 1) & (slots_.size() - 1); }
  size_t Distance(size_t from, size_t to) const { return (to - from) & (slots_.size() - 1); }
  // The slot that holds `digest`, or the empty one where it belongs.
  size_t SlotOf(const Sha256Digest& digest) const;

  std::vector<Slot> slots_;            // a power of two, at most half full
  std::vector<Sha256Digest> digests_;  // by block; meaningless unless published
  std::vector<bool> published_;        // by block
  uint32_t size_ = 0;
};

}  // namespace hidane::sched
