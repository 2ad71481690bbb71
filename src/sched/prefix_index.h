#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "sched/block_digest.h"

namespace hidane::sched {

/// Which block holds the K/V of which content: digest -> block, at most one of each.
/// Says nothing of who holds the block; a published block may lie free until it is used anew.
class PrefixIndex {
 public:
  /// REQUIRES: every block id passed later is < blocks.
  explicit PrefixIndex(uint32_t blocks) : digests_(blocks) {}

  std::optional<BlockId> Find(const Sha256Digest& digest) const;
  bool Contains(BlockId block) const { return digests_[block.value()].has_value(); }
  /// The block that stands for `digest` from now on: `block`, or the one published before it.
  /// REQUIRES: `block` isn't published under another digest.
  BlockId Publish(const Sha256Digest& digest, BlockId block);
  void Unpublish(BlockId block);  ///< no-op if it isn't published
  void Clear();
  uint32_t size() const { return static_cast<uint32_t>(blocks_.size()); }

 private:
  boost::unordered_flat_map<Sha256Digest, BlockId, DigestHash, DigestEqual> blocks_;
  std::vector<std::optional<Sha256Digest>> digests_;  // by block
};

}  // namespace hidane::sched
