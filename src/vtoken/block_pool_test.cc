#include "vtoken/block_pool.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <deque>
#include <vector>

#include "base/assert.h"

namespace hidane::vtoken {
namespace {

using Reuse = BlockPool::Reuse;

BlockId B(uint32_t id) {
  return BlockId(id);
}

TEST(BlockPoolTest, HandsOutTheOldestFreeBlockFirst) {
  BlockPool pool(2);
  const BlockId a = *pool.Allocate();
  const BlockId b = *pool.Allocate();
  ASSERT_TRUE(pool.Release(b, Reuse::kNewest));
  ASSERT_TRUE(pool.Release(a, Reuse::kNewest));
  EXPECT_EQ(*pool.Allocate(), b);
}

TEST(BlockPoolTest, AWorthlessBlockIsUsedBeforeOlderOnes) {
  BlockPool pool(3);
  const BlockId a = *pool.Allocate();
  ASSERT_TRUE(pool.Release(a, Reuse::kOldest));
  EXPECT_EQ(pool.oldest_free(), a);
}

// Ages count blocks handed out: here `proven` is released, then others come and go.
struct Aging {
  Aging() : pool(8) {
    pool.SetProvenWorth(4);
    proven = *pool.Allocate();
    while (pool.free() > 0) scratch.push_back(*pool.Allocate());
    HIDANE_ASSERT(pool.Release(proven, Reuse::kProven));
  }
  // One block is released after each that is handed out, so that the oldest fresh one has an age.
  BlockId Next(BlockId give_back) {
    HIDANE_ASSERT(pool.Release(give_back, Reuse::kNewest));
    return *pool.Allocate();
  }
  BlockPool pool;
  BlockId proven;
  std::vector<BlockId> scratch;
};

TEST(BlockPoolTest, ABlockThatWasUsedAgainOutlivesYoungerOnes) {
  Aging a;
  ASSERT_TRUE(a.pool.Release(a.scratch[0], Reuse::kNewest));
  ASSERT_TRUE(a.pool.Release(a.scratch[1], Reuse::kNewest));
  EXPECT_EQ(*a.pool.Allocate(), a.scratch[0]);
  ASSERT_TRUE(a.pool.Release(a.scratch[2], Reuse::kNewest));
  EXPECT_EQ(*a.pool.Allocate(), a.scratch[1]) << "aged 1, times 4; the proven one 1";
}

TEST(BlockPoolTest, ButNotForEver) {
  Aging a;
  ASSERT_TRUE(a.pool.Release(a.scratch[0], Reuse::kNewest));
  int taken = 0;  // with one fresh block free, always young, until the proven one's turn
  for (; taken < 100; ++taken) {
    const BlockId got = a.Next(a.scratch[1 + static_cast<size_t>(taken) % 2]);
    if (got == a.proven) break;
    a.scratch[1 + static_cast<size_t>(taken) % 2] = got;
  }
  EXPECT_GE(taken, 4);
  EXPECT_LT(taken, 100);
}

TEST(BlockPoolTest, RefusesWhenNoBlockIsFree) {
  BlockPool pool(1);
  ASSERT_TRUE(pool.Allocate());
  EXPECT_EQ(pool.Allocate().error().code, Code::kResourceExhausted);
}

TEST(BlockPoolTest, APrefixHitTakesAFreeBlockBackByItsId) {
  BlockPool pool(2);
  ASSERT_TRUE(pool.Ref(B(1)));
  EXPECT_EQ(pool.free(), 1u);
  EXPECT_EQ(*pool.Allocate(), B(0));
}

// A reader that outlives its sequence keeps the bytes from being overwritten.
TEST(BlockPoolTest, APinnedBlockThatNobodyHoldsIsNotHandedOut) {
  BlockPool pool(1);
  const BlockId a = *pool.Allocate();
  ASSERT_TRUE(pool.Pin(a));
  ASSERT_TRUE(pool.Release(a, Reuse::kNewest));
  EXPECT_EQ(pool.free(), 0u);
  EXPECT_EQ(pool.Allocate().error().code, Code::kResourceExhausted);
  ASSERT_TRUE(pool.Unpin(a));
  EXPECT_EQ(*pool.Allocate(), a);
}

TEST(BlockPoolTest, WrongCallsChangeNothing) {
  BlockPool pool(1);
  EXPECT_EQ(pool.Ref(B(1)).error().code, Code::kInvalidArgument);
  EXPECT_EQ(pool.Release(B(0), Reuse::kNewest).error().code, Code::kInternal);
  EXPECT_EQ(pool.Unpin(B(0)).error().code, Code::kInternal);
  EXPECT_EQ(pool.free(), 1u);
}

// The pool as two lists of free ids, and by block its counts and how it was released.
struct Model {
  explicit Model(uint32_t n) : blocks(n) {
    for (uint32_t id = 0; id < n; ++id) fresh.push_back(id);
  }
  struct Block {
    uint32_t refs = 0, pins = 0;
    uint64_t since = 0;
    Reuse reuse = Reuse::kNewest;
    bool free() const { return refs == 0 && pins == 0; }
  };
  std::deque<uint32_t>& ListOf(uint32_t id) {
    return blocks[id].reuse == Reuse::kProven ? proven : fresh;
  }
  void Take(uint32_t id) { std::erase(ListOf(id), id); }
  void Give(uint32_t id) {
    Block& b = blocks[id];
    if (!b.free()) return;
    const bool front = b.reuse == Reuse::kOldest;
    b.since = front ? 0 : clock;
    front ? ListOf(id).push_front(id) : ListOf(id).push_back(id);
  }
  size_t free() const { return fresh.size() + proven.size(); }
  uint32_t Oldest() const {
    if (fresh.empty() || proven.empty()) return fresh.empty() ? proven.front() : fresh.front();
    const uint64_t age = clock - blocks[fresh.front()].since;
    return age * kWorth >= clock - blocks[proven.front()].since ? fresh.front() : proven.front();
  }
  static constexpr uint64_t kWorth = 3;
  uint64_t clock = 0;
  std::deque<uint32_t> fresh, proven;
  std::vector<Block> blocks;
};

void Apply(uint32_t op, BlockPool& pool, Model& model) {
  const uint32_t id = (op / 8) % pool.size();
  Model::Block& block = model.blocks[id];
  switch (op % 8) {
    case 0:
    case 1:
    case 2: {
      const auto got = pool.Allocate();
      RC_ASSERT(got.has_value() == (model.free() > 0));
      if (!got) break;
      RC_ASSERT(got->value() == model.Oldest());
      model.Take(got->value());
      ++model.clock;
      model.blocks[got->value()].refs = 1;
      break;
    }
    case 3:
      if (block.free()) model.Take(id);
      ++block.refs;
      RC_ASSERT(pool.Ref(B(id)).has_value());
      break;
    case 4:
      if (block.free()) model.Take(id);
      ++block.pins;
      RC_ASSERT(pool.Pin(B(id)).has_value());
      break;
    case 5:
      RC_ASSERT(pool.Unpin(B(id)).has_value() == (block.pins > 0));
      if (block.pins == 0 || --block.pins > 0 || block.refs > 0) break;
      if (block.reuse == Reuse::kOldest) block.reuse = Reuse::kNewest;
      model.Give(id);
      break;
    default: {
      const auto reuse = static_cast<Reuse>((op >> 16) % 3);
      RC_ASSERT(pool.Release(B(id), reuse).has_value() == (block.refs > 0));
      if (block.refs == 0 || --block.refs > 0) break;
      block.reuse = reuse;
      model.Give(id);
    }
  }
}

RC_GTEST_PROP(BlockPoolProps, AgreesWithTheListModel, ()) {
  const auto ops = *rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange(0u, 3u << 16));
  BlockPool pool(5);
  pool.SetProvenWorth(Model::kWorth);
  Model model(5);
  for (const uint32_t op : ops) {
    Apply(op, pool, model);
    RC_ASSERT(pool.free() == model.free());
    if (pool.free() > 0) RC_ASSERT(pool.oldest_free().value() == model.Oldest());
    for (uint32_t id = 0; id < pool.size(); ++id) {
      RC_ASSERT(*pool.RefCount(B(id)) == model.blocks[id].refs);
      RC_ASSERT(*pool.Pinned(B(id)) == (model.blocks[id].pins > 0));
    }
  }
}

}  // namespace
}  // namespace hidane::vtoken
