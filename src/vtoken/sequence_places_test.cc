#include "vtoken/sequence_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "vtoken/kv_world.h"

namespace hidane::vtoken {
namespace {

using ::testing::UnorderedElementsAre;

/// Positions that a policy would see in `unit`; each slot must be the one that holds it.
std::vector<uint32_t> Seen(const SequenceKv& seq, uint32_t unit) {
  std::vector<uint32_t> slots(seq.live_tokens()), positions(seq.live_tokens());
  SequencePlaces(seq).Read(unit, slots, positions);
  for (size_t i = 0; i < slots.size(); ++i) {
    EXPECT_TRUE(seq.live(unit, slots[i]));
    EXPECT_EQ(seq.token(unit, slots[i]), positions[i]);
  }
  return positions;
}

TEST(SequencePlacesTest, APolicySeesTheLiveTokensOfEachUnitBeforeAndAfterTheRepair) {
  for (const Mode mode : {Mode::kExact, Mode::kMasked}) {
    KvWorld world(8, 2, 2);
    SequenceKv seq({.block_size = 2, .scope = Scope::kLayer, .units = 2, .mode = mode});
    ASSERT_TRUE(seq.Reserve(world, 6));
    ASSERT_TRUE(seq.Append(6));
    EXPECT_THAT(Seen(seq, 1), UnorderedElementsAre(0, 1, 2, 3, 4, 5));

    Epoch epoch(world);
    const std::vector<uint32_t> victims{0, 3, 2, 5};  // two of each layer
    ASSERT_TRUE(epoch.Evict(seq, victims, {}));
    ASSERT_TRUE(epoch.Seal());
    const auto fence = world.Start(epoch.groups());
    ASSERT_TRUE(fence && world.Wait(*fence));
    ASSERT_TRUE(epoch.Commit());
    EXPECT_THAT(Seen(seq, 0), UnorderedElementsAre(1, 2, 4, 5));
    EXPECT_THAT(Seen(seq, 1), UnorderedElementsAre(0, 1, 3, 4));
    ASSERT_TRUE(seq.Release(world));
  }
}

}  // namespace
}  // namespace hidane::vtoken
