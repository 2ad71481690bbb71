#include "model/kv_rows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "model/dequantize.h"

namespace hidane::model {
namespace {

/// Each element says where it was written: (layer, K or V, block, head, offset, d).
class KvRows : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr uint32_t kBlocks = 3;

  void SetUp() override {
    layout_ = {3, 2, 32, 4, GetParam()};
    auto memory = KvMemory::Allocate(layout_, kBlocks);
    ASSERT_TRUE(memory);
    kv_.emplace(std::move(*memory));
    ForEachRow([&](std::byte* row, float tag) {
      for (uint32_t d = 0; d < layout_.head_dim; ++d) Write(row, d, tag);
    });
  }

  template <class Fn>
  void ForEachRow(Fn fn) {
    for (uint32_t layer = 0; layer < layout_.layers; ++layer)
      for (uint32_t slot = 0; slot < kBlocks * layout_.block_size; ++slot)
        for (uint32_t head = 0; head < layout_.kv_heads; ++head)
          for (const bool is_v : {false, true})
            fn(Row(layer, is_v, head, slot), Tag(layer, is_v, head, slot));
  }
  std::byte* Row(uint32_t layer, bool is_v, uint32_t head, uint32_t slot) {
    const KvLayer kv = kv_->layer(layer);
    const uint32_t b = layout_.block_size;
    return (is_v ? kv.v : kv.k) + layout_.RowOffset(slot / b, head, slot % b);
  }
  static float Tag(uint32_t layer, bool is_v, uint32_t head, uint32_t slot) {
    return static_cast<float>(slot + 16 * (head + 2 * (is_v + 2 * layer)));  // exact in bf16
  }
  void Write(std::byte* row, uint32_t d, float value) {
    const uint16_t half = FloatToBf16(value);
    if (GetParam() == 2) std::memcpy(row + d * 2, &half, 2);
    if (GetParam() == 4) std::memcpy(row + d * 4, &value, 4);
  }
  float Read(const std::byte* row, uint32_t d) {
    uint16_t half;
    float value;
    std::memcpy(&half, row + d * 2, 2);
    std::memcpy(&value, row + (GetParam() == 4 ? d * 4 : 0), 4);
    return GetParam() == 2 ? Bf16ToFloat(half) : value;
  }

  /// All rows are as before but `to`, in the units that `moved` picks, which hold those of `from`.
  template <class Moved>
  void ExpectMoved(uint32_t from, uint32_t to, Moved moved) {
    for (uint32_t layer = 0; layer < layout_.layers; ++layer)
      for (uint32_t slot = 0; slot < kBlocks * layout_.block_size; ++slot)
        for (uint32_t head = 0; head < layout_.kv_heads; ++head)
          for (const bool is_v : {false, true}) {
            const uint32_t origin = slot == to && moved(layer, head) ? from : slot;
            for (uint32_t d = 0; d < layout_.head_dim; ++d)
              ASSERT_EQ(Read(Row(layer, is_v, head, slot), d), Tag(layer, is_v, head, origin))
                  << "layer " << layer << " head " << head << " slot " << slot;
          }
  }

  KvLayout layout_;
  std::optional<KvMemory> kv_;
};

TEST_P(KvRows, ASequenceMovesInAllLayersAndHeads) {
  const RowMove move{0, 11, 2};
  MoveRows(*kv_, layout_, KvUnit::kSequence, {&move, 1});
  ExpectMoved(11, 2, [](uint32_t, uint32_t) { return true; });
}

TEST_P(KvRows, ALayerMovesAlone) {
  const RowMove move{1, 4, 8};
  MoveRows(*kv_, layout_, KvUnit::kLayer, {&move, 1});
  ExpectMoved(4, 8, [](uint32_t layer, uint32_t) { return layer == 1; });
}

TEST_P(KvRows, AHeadMovesAlone) {
  const RowMove move{2 * 2 + 1, 7, 0};
  MoveRows(*kv_, layout_, KvUnit::kKvHead, {&move, 1});
  ExpectMoved(7, 0, [](uint32_t layer, uint32_t head) { return layer == 2 && head == 1; });
}

TEST_P(KvRows, KeysAreReadInTheOrderOfTheTable) {
  const BlockId table[] = {BlockId(2), BlockId(0)};
  std::vector<float> keys(5 * layout_.head_dim);
  ReadKeys(*kv_, layout_, 1, 1, table, 2, 5, keys);
  const uint32_t slots[] = {10, 11, 0, 1, 2};
  for (uint32_t i = 0; i < 5; ++i)
    for (uint32_t d = 0; d < layout_.head_dim; ++d)
      EXPECT_EQ(keys[i * layout_.head_dim + d], Tag(1, false, 1, slots[i]));
}

TEST_P(KvRows, WhatWasSavedComesBackInOtherBlocks) {
  const BlockId before[] = {BlockId(2), BlockId(0)}, after[] = {BlockId(1), BlockId(2)};
  std::vector<std::byte> bytes(7 * layout_.token_bytes());
  SaveSlots(*kv_, layout_, before, 7, bytes);
  LoadSlots(*kv_, layout_, after, 7, bytes);
  const uint32_t from[] = {8, 9, 10, 11, 0, 1, 2}, to[] = {4, 5, 6, 7, 8, 9, 10};
  for (uint32_t layer = 0; layer < layout_.layers; ++layer)
    for (uint32_t head = 0; head < layout_.kv_heads; ++head)
      for (const bool is_v : {false, true})
        for (uint32_t i = 0; i < 7; ++i)
          ASSERT_EQ(Read(Row(layer, is_v, head, to[i]), 31), Tag(layer, is_v, head, from[i]));
  EXPECT_EQ(Read(Row(0, false, 0, 11), 0), Tag(0, false, 0, 11));  // behind the last slot
}

INSTANTIATE_TEST_SUITE_P(ElementBytes, KvRows, testing::Values(2u, 4u),
                         [](const auto& test) { return test.param == 2 ? "bf16" : "f32"; });

}  // namespace
}  // namespace hidane::model
