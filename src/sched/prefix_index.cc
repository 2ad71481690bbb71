#include "sched/prefix_index.h"

#include <algorithm>

#include "base/assert.h"

namespace hidane::sched {

std::optional<BlockId> PrefixIndex::Find(const Sha256Digest& digest) const {
  const auto at = blocks_.find(digest);
  if (at == blocks_.end()) return std::nullopt;
  return at->second;
}

BlockId PrefixIndex::Publish(const Sha256Digest& digest, BlockId block) {
  std::optional<Sha256Digest>& mine = digests_[block.value()];
  HIDANE_ASSERT(!mine || *mine == digest);
  const BlockId canonical = blocks_.try_emplace(digest, block).first->second;
  if (canonical == block) mine = digest;
  return canonical;
}

void PrefixIndex::Unpublish(BlockId block) {
  std::optional<Sha256Digest>& mine = digests_[block.value()];
  if (!mine) return;
  blocks_.erase(*mine);
  mine.reset();
}

void PrefixIndex::Clear() {
  blocks_.clear();
  std::fill(digests_.begin(), digests_.end(), std::nullopt);
}

}  // namespace hidane::sched
