#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/rng.h"
#include "vtoken/block_pool.h"
#include "vtoken/block_pool_adapter.h"
#include "vtoken/epoch.h"
#include "vtoken/move_executor.h"
#include "vtoken/sequence_kv.h"

namespace hidane::vtoken {

/// A host engine for tests: a pool whose slots carry tags instead of K/V, so that a misplaced,
/// stale or lost row names itself. A freed block is poisoned at once. Header-only: tests alone
/// include it.
class KvWorld final : public BlockPoolAdapter, public MoveExecutor {
 public:
  static constexpr uint64_t kPoison = 0xdead;

  KvWorld(uint32_t blocks, uint32_t block_size, uint32_t units)
      : pool_(blocks),
        block_size_(block_size),
        rows_(units, std::vector<uint64_t>(size_t{blocks} * block_size, kPoison)) {}

  // What a row should be.
  static uint64_t Tag(uint64_t writer, uint32_t token, uint32_t unit) {
    return Mix64(writer << 40 | uint64_t{token} << 12 | unit) | 1;
  }
  uint64_t& row(uint32_t unit, uint32_t physical) { return rows_[unit][physical]; }
  uint64_t& row(const SequenceKv& seq, uint32_t unit, uint32_t slot) {
    return row(unit, seq.table()[slot / block_size_].value() * block_size_ + slot % block_size_);
  }
  BlockPool& pool() { return pool_; }

  // A prefix cache that remembers what it published.
  void Publish(BlockId block) { published_.try_emplace(block, Contents(block)); }
  bool published(BlockId block) const { return published_.contains(block); }
  // A reader of the live rows that `seq` has in its table block `index`.
  void Pin(const SequenceKv& seq, uint32_t index) {
    const BlockId block = seq.table()[index];
    HIDANE_ASSERT(pool_.Pin(block));
    auto rows = Contents(block);
    for (uint32_t i = 0; i < rows.size(); ++i) {
      const uint32_t unit = i / block_size_, slot = index * block_size_ + i % block_size_;
      if (!seq.live(unit, slot)) rows[i] = kPoison;
    }
    pinned_.emplace_back(block, std::move(rows));
  }
  void UnpinOldest() {
    const BlockId block = pinned_.front().first;
    pinned_.erase(pinned_.begin());
    HIDANE_ASSERT(pool_.Unpin(block));
    PoisonIfFree(block);
  }
  size_t pins() const { return pinned_.size(); }

  /// What is wrong with blocks that somebody reads, or "".
  std::string CheckReaders() const {
    for (const auto& [block, contents] : published_) {
      if (contents != Contents(block)) return "a published block was written";
    }
    for (const auto& [block, contents] : pinned_) {
      const auto now = Contents(block);
      for (size_t i = 0; i < now.size(); ++i) {
        if (contents[i] != kPoison && contents[i] != now[i]) return "a pinned row was written";
      }
    }
    return "";
  }

  Result<uint32_t> RefCount(BlockId block) const override { return pool_.RefCount(block); }
  Result<bool> Pinned(BlockId block) const override { return pool_.Pinned(block); }
  Result<BlockId> Allocate() override {
    if (pool_.free() > 0) published_.erase(pool_.oldest_free());
    auto block = pool_.Allocate();
    if (block) Poison(*block);
    return block;
  }
  Status Retain(BlockId block) override { return pool_.Ref(block); }
  Status Release(BlockId block) override {
    const bool named = published(block);
    HIDANE_CHECK_OK(
        pool_.Release(block, named ? BlockPool::Reuse::kNewest : BlockPool::Reuse::kOldest));
    PoisonIfFree(block);
    return {};
  }
  Status Unpublish(BlockId block) override {
    published_.erase(block);
    return {};
  }

  /// Nothing is copied before the fence, and then in another order.
  Result<Fence> Start(std::span<const MoveGroup> groups) override {
    pending_.assign(groups.begin(), groups.end());
    return Fence{++fence_};
  }
  Status Wait(Fence fence) override {
    HIDANE_ASSERT(fence.id == fence_);
    std::reverse(pending_.begin(), pending_.end());
    for (const MoveGroup& group : pending_) {
      for (size_t i = group.moves.size(); i-- > 0;) {
        const SlotMove& move = group.moves[i];
        rows_[move.unit][move.to] = rows_[move.unit][move.from];
      }
    }
    pending_.clear();
    return {};
  }

 private:
  std::vector<uint64_t> Contents(BlockId block) const {
    std::vector<uint64_t> out;
    for (const auto& unit : rows_) {
      const auto first = unit.begin() + block.value() * block_size_;
      out.insert(out.end(), first, first + block_size_);
    }
    return out;
  }
  void Poison(BlockId block) {
    for (auto& unit : rows_) {
      std::fill_n(unit.begin() + block.value() * block_size_, block_size_, kPoison);
    }
  }
  void PoisonIfFree(BlockId block) {
    const bool free = *pool_.RefCount(block) == 0 && !*pool_.Pinned(block);
    if (free && !published(block)) Poison(block);
  }

  BlockPool pool_;
  uint32_t block_size_;
  std::vector<std::vector<uint64_t>> rows_;  // [units][blocks * block_size]
  std::map<BlockId, std::vector<uint64_t>> published_;
  std::vector<std::pair<BlockId, std::vector<uint64_t>>> pinned_;
  std::vector<MoveGroup> pending_;
  uint64_t fence_ = 0;
};

}  // namespace hidane::vtoken
