#include "sched/kv_cache.h"

#include <algorithm>

#include "base/assert.h"

namespace hidane::sched {

using Reuse = vtoken::BlockPool::Reuse;

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
}

void KvCache::Hold(std::span<const Sha256Digest> chain, std::vector<BlockId>& table) {
  for (const Sha256Digest& digest : chain) {
    const auto block = index_.Find(digest);
    HIDANE_ASSERT(block && pool_.Ref(*block));
    table.push_back(*block);
  }
}

BlockId KvCache::Publish(const Sha256Digest& digest, BlockId block) {
  const BlockId canonical = index_.Publish(digest, block);
  if (canonical == block) return block;
  HIDANE_ASSERT(pool_.Ref(canonical) && Release(block));
  return canonical;
}

void KvCache::ReleaseTable(std::span<const BlockId> table) {
  for (size_t i = table.size(); i-- > 0;) HIDANE_ASSERT(Release(table[i]));
}

Result<BlockId> KvCache::Allocate() {
  if (pool_.free() > 0) index_.Unpublish(pool_.oldest_free());
  return pool_.Allocate();
}

Status KvCache::Release(BlockId block) {
  // The index trusts its callers, the pool does not.
  const bool named = block.value() < blocks() && index_.Contains(block);
  return pool_.Release(block, named ? Reuse::kNewest : Reuse::kOldest);
}

Status KvCache::Unpublish(BlockId block) {
  HIDANE_CHECK_OK(pool_.RefCount(block));
  index_.Unpublish(block);
  return {};
}

}  // namespace hidane::sched
