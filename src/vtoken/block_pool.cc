#include "vtoken/block_pool.h"

#include <fmt/format.h>

#include "base/assert.h"

namespace hidane::vtoken {
namespace {
constexpr uint32_t kNone = UINT32_MAX;
}  // namespace

BlockPool::BlockPool(uint32_t blocks)
    : blocks_(blocks), fresh_{kNone, kNone}, proven_{kNone, kNone} {
  for (uint32_t id = 0; id < blocks; ++id) Link(id);
}

BlockId BlockPool::oldest_free() const {
  HIDANE_ASSERT(free_ > 0);
  if (proven_.oldest == kNone) return BlockId(fresh_.oldest);
  if (fresh_.oldest == kNone) return BlockId(proven_.oldest);
  const bool fresh_first = static_cast<double>(Age(fresh_.oldest)) * proven_worth_ >=
                           static_cast<double>(Age(proven_.oldest));
  return BlockId(fresh_first ? fresh_.oldest : proven_.oldest);
}

Result<BlockId> BlockPool::Allocate() {
  if (free_ == 0) {
    return Fail(Code::kResourceExhausted, fmt::format("none of {} KV blocks is free", size()));
  }
  const uint32_t id = oldest_free().value();
  Unlink(id);
  ++clock_;
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
  if (--b.refs > 0) return {};
  b.reuse = reuse;
  if (b.pins == 0) Link(block.value());
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
  if (--b.pins > 0 || b.refs > 0) return {};
  if (b.reuse == Reuse::kOldest) b.reuse = Reuse::kNewest;  // its reader used it until now
  Link(block.value());
  return {};
}

tl::unexpected<Error> BlockPool::Unknown(BlockId block) const {
  return Fail(Code::kInvalidArgument,
              fmt::format("KV block {} of a pool of {}", block.value(), size()));
}

// A worthless block is as old as the pool, so that its list's turn always comes first.
void BlockPool::Link(uint32_t id) {
  Block& b = blocks_[id];
  List& list = ListOf(b);
  const bool front = b.reuse == Reuse::kOldest;
  b.since = front ? 0 : clock_;
  b.prev = front ? kNone : list.newest;
  b.next = front ? list.oldest : kNone;
  (b.prev == kNone ? list.oldest : blocks_[b.prev].next) = id;
  (b.next == kNone ? list.newest : blocks_[b.next].prev) = id;
  ++free_;
}

void BlockPool::Unlink(uint32_t id) {
  const Block& b = blocks_[id];
  List& list = ListOf(b);
  (b.prev == kNone ? list.oldest : blocks_[b.prev].next) = b.next;
  (b.next == kNone ? list.newest : blocks_[b.next].prev) = b.prev;
  --free_;
}

}  // namespace hidane::vtoken
