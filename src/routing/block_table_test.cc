#include "routing/block_table.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <map>
#include <vector>

namespace hidane::routing {
namespace {

TEST(BlockTableTest, AnEmptyOneKnowsNothing) {
  BlockTable table;
  table.Prefetch(7);
  table.Erase(7);
  EXPECT_EQ(table.Find(7), BlockTable::kNone);
  EXPECT_EQ(table.size(), 0u);
}

TEST(BlockTableTest, SteadyInsertionAndErasureNeverGrowIt) {
  BlockTable table;
  for (uint64_t block = 0; block < 100; ++block) table.Set(block, 1);
  const size_t bytes = table.bytes();
  for (uint64_t block = 100; block < 10'000; ++block) {
    table.Erase(block - 100);
    table.Set(block, 1);
  }
  EXPECT_EQ(table.size(), 100u);
  EXPECT_EQ(table.bytes(), bytes);
}

// Few keys of a small range: they meet in the same slots, also across the table's end.
RC_GTEST_PROP(BlockTableTest, IsAMap, ()) {
  BlockTable table;
  std::map<uint64_t, uint32_t> model;
  const auto steps = *rc::gen::container<std::vector<std::pair<uint8_t, uint8_t>>>(
      rc::gen::pair(rc::gen::inRange<uint8_t>(0, 64), rc::gen::inRange<uint8_t>(0, 4)));
  for (const auto& [block, value] : steps) {
    if (value == 0) {
      table.Erase(block);
      model.erase(block);
    } else {
      table.Set(block, value);
      model[block] = value;
    }
    RC_ASSERT(table.size() == model.size());
    for (uint64_t b = 0; b < 64; ++b) {
      const auto at = model.find(b);
      RC_ASSERT(table.Find(b) == (at == model.end() ? BlockTable::kNone : at->second));
    }
  }
}

}  // namespace
}  // namespace hidane::routing
