#include "sched/prefix_index.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace hidane::sched {

PrefixIndex::PrefixIndex(uint32_t blocks)
    : slots_(std::bit_ceil(2 * size_t{blocks} + 1)), digests_(blocks), published_(blocks) {}

size_t PrefixIndex::SlotOf(const Sha256Digest& digest) const {
  const uint32_t tag = Tag(digest);
  size_t at = tag & (slots_.size() - 1);
  while (!slots_[at].empty() &&
         (slots_[at].tag != tag || !DigestEqual()(digests_[slots_[at].block], digest))) {
    at = Next(at);
  }
  return at;
}

std::optional<BlockId> PrefixIndex::Find(const Sha256Digest& digest) const {
  const Slot& slot = slots_[SlotOf(digest)];
  if (slot.empty()) return std::nullopt;
  return BlockId(slot.block);
}

BlockId PrefixIndex::Publish(const Sha256Digest& digest, BlockId block) {
  const uint32_t id = block.value();
  HIDANE_ASSERT(!published_[id] || DigestEqual()(digests_[id], digest));
  Slot& slot = slots_[SlotOf(digest)];
  if (!slot.empty()) return BlockId(slot.block);
  slot = {.tag = Tag(digest), .block = id};
  digests_[id] = digest;
  published_[id] = true;
  ++size_;
  return block;
}

void PrefixIndex::Unpublish(BlockId block) {
  if (!published_[block.value()]) return;
  published_[block.value()] = false;
  --size_;
  // Entries behind the gap move into it, as far as their homes allow.
  size_t gap = SlotOf(digests_[block.value()]);
  for (size_t at = Next(gap); !slots_[at].empty(); at = Next(at)) {
    const size_t home = slots_[at].tag & (slots_.size() - 1);
    if (Distance(home, at) < Distance(gap, at)) continue;
    slots_[gap] = slots_[at];
    gap = at;
  }
  slots_[gap] = {};
}

void PrefixIndex::Clear() {
  std::ranges::fill(slots_, Slot{});
  published_.assign(published_.size(), false);
  size_ = 0;
}

}  // namespace hidane::sched
