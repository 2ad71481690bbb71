#include "vtoken/live_set.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <vector>

namespace hidane::vtoken {
namespace {

TEST(LiveSetTest, CountsTheLiveSlotsOfEachBlock) {
  LiveSet set(4);
  set.AssignDense(10);
  EXPECT_TRUE(set.Kill(2));
  for (uint32_t slot = 4; slot < 8; ++slot) EXPECT_TRUE(set.Kill(slot));
  EXPECT_EQ(set.count(), 5u);
  EXPECT_EQ(std::vector(set.occupancies().begin(), set.occupancies().end()),
            (std::vector<uint16_t>{3, 0, 2}));
  EXPECT_EQ(set.CountFirst(0, 3), 2u);
}

TEST(LiveSetTest, ASlotDiesOnce) {
  LiveSet set(4);
  set.AssignDense(1);
  EXPECT_TRUE(set.Kill(0));
  EXPECT_FALSE(set.Kill(0));
  EXPECT_TRUE(set.Revive(0));
  EXPECT_FALSE(set.Revive(0));
  EXPECT_EQ(set.count(), 1u);
}

TEST(LiveSetTest, SlotsPastTheEndAreDead) {
  LiveSet set(4);
  set.AssignDense(2);
  std::vector<uint32_t> dead;
  set.ForEachDead(0, 4, [&](uint32_t slot) { dead.push_back(slot); });
  EXPECT_EQ(dead, (std::vector<uint32_t>{2, 3}));
}

void Check(const LiveSet& set, const std::vector<bool>& model) {
  const uint32_t size = set.block_size();
  RC_ASSERT(set.slots() == model.size());
  RC_ASSERT(set.blocks() == (model.size() + size - 1) / size);
  uint32_t count = 0;
  for (uint32_t b = 0; b < set.blocks(); ++b) {
    std::vector<uint32_t> live, dead, want_live, want_dead;
    set.ForEachLive(b * size, size, [&](uint32_t slot) { live.push_back(slot); });
    set.ForEachDead(b * size, size, [&](uint32_t slot) { dead.push_back(slot); });
    for (uint32_t slot = b * size; slot < (b + 1) * size; ++slot) {
      (slot < model.size() && model[slot] ? want_live : want_dead).push_back(slot);
    }
    RC_ASSERT(live == want_live);
    RC_ASSERT(dead == want_dead);
    RC_ASSERT(set.occupancies()[b] == live.size());
    const uint32_t half = size / 2;
    uint32_t first = 0;
    for (const uint32_t slot : live) first += slot < b * size + half;
    RC_ASSERT(set.CountFirst(b, half) == first);
    count += static_cast<uint32_t>(live.size());
  }
  RC_ASSERT(set.count() == count);
  for (const uint32_t n : {0u, size / 2, size}) {
    std::vector<uint32_t> sums(set.blocks(), 7);
    set.AddCountFirst(n, sums);
    for (uint32_t b = 0; b < set.blocks(); ++b) RC_ASSERT(sums[b] == 7 + set.CountFirst(b, n));
  }
}

RC_GTEST_PROP(LiveSetProps, AgreesWithAVectorOfBools, ()) {
  const auto size = *rc::gen::element(1u, 3u, 4u, 8u, 16u, 32u, 48u, 64u, 100u, 256u);
  const auto ops = *rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange(0u, 1u << 20));
  LiveSet set(size);
  std::vector<bool> model;
  for (const uint32_t op : ops) {
    const uint32_t arg = op / 8;
    if (op % 8 == 0) {
      set.Append(arg % 200);
      model.resize(model.size() + arg % 200, true);
    } else if (op % 8 == 1) {
      const auto n = arg % (static_cast<uint32_t>(model.size()) + 1);
      set.RemoveLast(n);
      model.resize(model.size() - n);
    } else if (!model.empty()) {
      const auto slot = arg % static_cast<uint32_t>(model.size());
      const bool live = op % 8 < 3;
      RC_ASSERT((live ? set.Revive(slot) : set.Kill(slot)) == (model[slot] != live));
      model[slot] = live;
    }
  }
  Check(set, model);
}

}  // namespace
}  // namespace hidane::vtoken
