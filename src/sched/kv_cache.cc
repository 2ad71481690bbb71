#include "sched/kv_cache.h"

#include <algorithm>

#include "base/assert.h"

namespace hidane::sched {

using Reuse = vtoken::BlockPool::Reuse;

KvCache::KvCache(uint32_t blocks, Eviction eviction)
    : pool_(blocks),
      index_(blocks),
      eviction_(eviction),
      proven_(blocks),
      odds_(std::max(1u, blocks / 4)) {}  // a part of the blocks, so that it is soon learned

KvCache::Hit KvCache::Find(std::span<const Sha256Digest> chain) const {
  if (!chains_whole_) return Walk(chain);
  // By the invariant published blocks come before the others, and held before free ones.
  const auto published = [&](const Sha256Digest& digest) {
    return index_.Find(digest).has_value();
  };
  const auto held = [&](const Sha256Digest& digest) {
    return *pool_.RefCount(*index_.Find(digest)) > 0;
  };
  const auto end = std::partition_point(chain.begin(), chain.end(), published);
  const auto held_end = std::partition_point(chain.begin(), end, held);
  return {.blocks = static_cast<uint32_t>(end - chain.begin()),
          .free = static_cast<uint32_t>(end - held_end)};
}

KvCache::Hit KvCache::Walk(std::span<const Sha256Digest> chain) const {
  Hit hit;
  for (const Sha256Digest& digest : chain) {
    const auto block = index_.Find(digest);
    if (!block) break;
    ++hit.blocks;
    hit.free += *pool_.RefCount(*block) == 0;
  }
  return hit;
}

void KvCache::Clear() {
  index_.Clear();
  chains_whole_ = true;
  proven_.assign(proven_.size(), false);
}

void KvCache::Hold(std::span<const Sha256Digest> chain, std::vector<BlockId>& table) {
  for (const Sha256Digest& digest : chain) {
    const auto block = index_.Find(digest);
    HIDANE_ASSERT(block);
    Take(*block);
    table.push_back(*block);
  }
}

// A reference more to published contents.
void KvCache::Take(BlockId block) {
  const bool proven = proven_[block.value()];
  if (*pool_.RefCount(block) == 0) odds_.Used(proven);
  proven_[block.value()] = true;
  HIDANE_ASSERT(pool_.Ref(block));
}

BlockId KvCache::Publish(const Sha256Digest& digest, BlockId block) {
  const BlockId canonical = index_.Publish(digest, block);
  if (canonical == block) return block;
  Take(canonical);
  HIDANE_ASSERT(Release(block));
  return canonical;
}

void KvCache::ReleaseTable(std::span<const BlockId> table) {
  for (size_t i = table.size(); i-- > 0;) HIDANE_ASSERT(Release(table[i]));
}

Result<BlockId> KvCache::Allocate() {
  pool_.SetProvenWorth(odds_.ProvenWorth());
  if (pool_.free() > 0) Evict(pool_.oldest_free());
  return pool_.Allocate();
}

void KvCache::Evict(BlockId block) {
  if (index_.Contains(block)) odds_.Evicted(proven_[block.value()]);
  index_.Unpublish(block);
  proven_[block.value()] = false;
}

Status KvCache::Release(BlockId block) {
  // The index trusts its callers, the pool does not.
  const bool named = block.value() < blocks() && index_.Contains(block);
  if (!named) return pool_.Release(block, Reuse::kOldest);
  const bool keep = eviction_ == Eviction::kReuse && proven_[block.value()];
  return pool_.Release(block, keep ? Reuse::kProven : Reuse::kNewest);
}

Status KvCache::Unpublish(BlockId block) {
  HIDANE_CHECK_OK(pool_.RefCount(block));
  index_.Unpublish(block);
  proven_[block.value()] = false;
  return {};
}

}  // namespace hidane::sched
