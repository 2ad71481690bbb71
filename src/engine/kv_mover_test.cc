#include "engine/kv_mover.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"
#include "engine/fakes.h"

namespace hidane::engine {
namespace {

/// Batches of disjoint moves against the same moves on plain arrays, by the thread and at once.
TEST(KvMover, MovesWhatItIsToldBeforeTheFenceIsPassed) {
  for (const uint32_t at_once_max : {0u, 16u, 1000u}) {
    constexpr uint32_t kBlocks = 64, kBlock = 8, kSlots = kBlocks * kBlock, kUnits = 4;
    FakeModel model({.kv_blocks = kBlocks, .block_size = kBlock, .layers = 2, .kv_heads = 2});
    std::vector<BlockId> table;
    for (uint32_t i = 0; i < kBlocks; ++i) table.push_back(BlockId(i));
    std::vector<std::byte> before(kSlots * model.kv_layout().token_bytes()), after(before.size());
    Rng rng(at_once_max);
    for (std::byte& b : before) b = static_cast<std::byte>(rng.Next());
    model.LoadSlots(table, kSlots, before);
    const size_t row = before.size() / kSlots / kUnits;  // of a unit

    KvMover mover(model, at_once_max);
    for (int round = 0; round < 50; ++round) {
      model.SaveSlots(table, kSlots, before);
      std::vector<vtoken::SlotMove> moves;
      for (uint32_t unit = 0; unit < kUnits; ++unit) {
        for (uint32_t slot = 0; slot < kSlots / 2; ++slot) {
          if (rng.Below(4) == 0) moves.push_back({unit, slot, kSlots / 2 + slot});
        }
      }
      const vtoken::MoveGroup groups[] = {{vtoken::Scope::kKvHead, std::span(moves).first(40)},
                                          {vtoken::Scope::kKvHead, std::span(moves).subspan(40)}};
      const auto fence = mover.Start(groups);
      ASSERT_TRUE(fence);
      for (const auto& m : moves) {
        std::copy_n(before.begin() + static_cast<ptrdiff_t>((m.unit * kSlots + m.from) * row), row,
                    before.begin() + static_cast<ptrdiff_t>((m.unit * kSlots + m.to) * row));
      }
      ASSERT_TRUE(mover.Wait(*fence));
      model.SaveSlots(table, kSlots, after);
      // Only the words that the fake keeps; K and V are one to it.
      for (size_t i = 0; i < before.size(); i += row) {
        for (size_t b = 0; b < sizeof(uint64_t); ++b) ASSERT_EQ(after[i + b], before[i + b]);
      }
    }
  }
}

}  // namespace
}  // namespace hidane::engine
