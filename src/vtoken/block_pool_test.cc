#include "vtoken/block_pool.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <deque>
#include <vector>

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

// The pool as a list of free ids and two maps of counts.
struct Model {
  explicit Model(uint32_t n) : refs(n), pins(n) {
    for (uint32_t id = 0; id < n; ++id) free.push_back(id);
  }
  bool is_free(uint32_t id) const { return refs[id] == 0 && pins[id] == 0; }
  void Take(uint32_t id) { std::erase(free, id); }
  void Give(uint32_t id, Reuse reuse) {
    if (!is_free(id)) return;
    if (reuse == Reuse::kOldest)
      free.push_front(id);
    else
      free.push_back(id);
  }
  std::deque<uint32_t> free;
  std::vector<uint32_t> refs, pins;
};

void Apply(uint32_t op, BlockPool& pool, Model& model) {
  const uint32_t id = (op / 8) % pool.size();
  const Reuse reuse = op & 0x10000 ? Reuse::kOldest : Reuse::kNewest;
  switch (op % 8) {
    case 0:
    case 1:
    case 2: {
      const auto got = pool.Allocate();
      RC_ASSERT(got.has_value() == !model.free.empty());
      if (!got) break;
      RC_ASSERT(got->value() == model.free.front());
      model.free.pop_front();
      model.refs[got->value()] = 1;
      break;
    }
    case 3:
      if (model.is_free(id)) model.Take(id);
      ++model.refs[id];
      RC_ASSERT(pool.Ref(B(id)).has_value());
      break;
    case 4:
      if (model.is_free(id)) model.Take(id);
      ++model.pins[id];
      RC_ASSERT(pool.Pin(B(id)).has_value());
      break;
    case 5:
      RC_ASSERT(pool.Unpin(B(id)).has_value() == (model.pins[id] > 0));
      if (model.pins[id] > 0 && --model.pins[id] == 0) model.Give(id, Reuse::kNewest);
      break;
    default:
      RC_ASSERT(pool.Release(B(id), reuse).has_value() == (model.refs[id] > 0));
      if (model.refs[id] > 0 && --model.refs[id] == 0) model.Give(id, reuse);
  }
}

RC_GTEST_PROP(BlockPoolProps, AgreesWithTheListModel, ()) {
  const auto ops = *rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange(0u, 1u << 17));
  BlockPool pool(5);
  Model model(5);
  for (const uint32_t op : ops) {
    Apply(op, pool, model);
    RC_ASSERT(pool.free() == model.free.size());
    if (pool.free() > 0) RC_ASSERT(pool.oldest_free().value() == model.free.front());
    for (uint32_t id = 0; id < pool.size(); ++id) {
      RC_ASSERT(*pool.RefCount(B(id)) == model.refs[id]);
      RC_ASSERT(*pool.Pinned(B(id)) == (model.pins[id] > 0));
    }
  }
}

}  // namespace
}  // namespace hidane::vtoken
