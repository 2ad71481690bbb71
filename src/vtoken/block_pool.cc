#include "vtoken/block_pool.h"

#include <fmt/format.h>

#include "base/assert.h"

namespace hidane::vtoken {
namespace {
constexpr uint32_t kNone = UINT32_MAX;
}  // namespace

BlockPool::BlockPool(uint32_t blocks) : blocks_(blocks), oldest_(kNone), newest_(kNone) {
  for (uint32_t id = 0; id < blocks; ++id) Link(id, Reuse::kNewest);
}

BlockId BlockPool::oldest_free() const {
  HIDANE_ASSERT(free_ > 0);
  return BlockId(oldest_);
}

Result<BlockId> BlockPool::Allocate() {
  if (free_ == 0) {
    return Fail(Code::kResourceExhausted, fmt::format("none of {} KV blocks is free", size()));
  }
  const uint32_t id = oldest_;
  Unlink(id);
  blocks_[id].refs = 1;
  return BlockId(id);
}

Result<bool> BlockPool::Pinned(BlockId block) const {
  if (block.value() >= size()) return Unknown(block);
  return blocks_[block.value()].pins > 0;
}

Status BlockPool::Ref(BlockId block) {
  if (block.value() >= size()) return Unknown(block);
  Block& b = blocks_[block.value()];
  if (b.refs == 0 && b.pins == 0) Unlink(block.value());
  ++b.refs;
  return {};
}

Status BlockPool::Release(BlockId block, Reuse reuse) {
  if (block.value() >= size()) return Unknown(block);
  Block& b = blocks_[block.value()];
  if (b.refs == 0) {
    return Fail(Code::kInternal, fmt::format("KV block {} is not held", block.value()));
  }
  if (--b.refs == 0 && b.pins == 0) Link(block.value(), reuse);
  return {};
}

Status BlockPool::Pin(BlockId block) {
  if (block.value() >= size()) return Unknown(block);
  Block& b = blocks_[block.value()];
  if (b.refs == 0 && b.pins == 0) Unlink(block.value());
  ++b.pins;
  return {};
}

Status BlockPool::Unpin(BlockId block) {
  if (block.value() >= size()) return Unknown(block);
  Block& b = blocks_[block.value()];
  if (b.pins == 0) {
    return Fail(Code::kInternal, fmt::format("KV block {} is not pinned", block.value()));
  }
  if (--b.pins == 0 && b.refs == 0) Link(block.value(), Reuse::kNewest);
  return {};
}

tl::unexpected<Error> BlockPool::Unknown(BlockId block) const {
  return Fail(Code::kInvalidArgument,
              fmt::format("KV block {} of a pool of {}", block.value(), size()));
}

void BlockPool::Link(uint32_t id, Reuse reuse) {
  const bool front = reuse == Reuse::kOldest;
  Block& b = blocks_[id];
  b.prev = front ? kNone : newest_;
  b.next = front ? oldest_ : kNone;
  (b.prev == kNone ? oldest_ : blocks_[b.prev].next) = id;
  (b.next == kNone ? newest_ : blocks_[b.next].prev) = id;
  ++free_;
}

void BlockPool::Unlink(uint32_t id) {
  const Block& b = blocks_[id];
  (b.prev == kNone ? oldest_ : blocks_[b.prev].next) = b.next;
  (b.next == kNone ? newest_ : blocks_[b.next].prev) = b.prev;
  --free_;
}

}  // namespace hidane::vtoken
