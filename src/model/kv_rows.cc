#include "model/kv_rows.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "model/dequantize.h"

namespace hidane::model {
namespace {

/// K and V of the kv heads first .. first + n of a layer.
void CopyHeads(const KvLayer& kv, const KvLayout& layout, uint32_t first, uint32_t n,
               const RowMove& move) {
  const uint32_t b = layout.block_size;
  for (uint32_t head = first; head < first + n; ++head) {
    const size_t from = layout.RowOffset(move.from / b, head, move.from % b);
    const size_t to = layout.RowOffset(move.to / b, head, move.to % b);
    std::memcpy(kv.k + to, kv.k + from, layout.row_bytes());
    std::memcpy(kv.v + to, kv.v + from, layout.row_bytes());
  }
}

/// fn(rows in KV memory, their bytes) for each run of slots in one block, as SaveSlots orders them.
template <class Fn>
void ForEachRun(const KvMemory& kv, const KvLayout& layout, std::span<const BlockId> block_table,
                uint32_t slots, Fn fn) {
  for (uint32_t layer = 0; layer < layout.layers; ++layer) {
    for (std::byte* const array : {kv.layer(layer).k, kv.layer(layer).v}) {
      for (uint32_t head = 0; head < layout.kv_heads; ++head) {
        for (uint32_t slot = 0; slot < slots; slot += layout.block_size) {
          const uint32_t block = block_table[slot / layout.block_size].value();
          const uint32_t n = std::min(layout.block_size, slots - slot);
          fn(array + layout.RowOffset(block, head, 0), n * layout.row_bytes());
        }
      }
    }
  }
}

}  // namespace

void MoveRows(const KvMemory& kv, const KvLayout& layout, KvUnit unit,
              std::span<const RowMove> moves) {
  const uint32_t heads = layout.kv_heads;
  if (unit == KvUnit::kSequence) {  // by layer, whose rows lie together
    for (uint32_t layer = 0; layer < layout.layers; ++layer) {
      for (const RowMove& move : moves) CopyHeads(kv.layer(layer), layout, 0, heads, move);
    }
    return;
  }
  for (const RowMove& move : moves) {
    const bool whole = unit == KvUnit::kLayer;
    const uint32_t layer = whole ? move.unit : move.unit / heads;
    HIDANE_ASSERT(layer < layout.layers);
    CopyHeads(kv.layer(layer), layout, whole ? 0 : move.unit % heads, whole ? heads : 1, move);
  }
}

void SaveSlots(const KvMemory& kv, const KvLayout& layout, std::span<const BlockId> block_table,
               uint32_t slots, std::span<std::byte> bytes) {
  HIDANE_ASSERT(bytes.size() == slots * layout.token_bytes());
  std::byte* to = bytes.data();
  ForEachRun(kv, layout, block_table, slots, [&](const std::byte* rows, size_t n) {
    std::memcpy(to, rows, n);
    to += n;
  });
}

void LoadSlots(const KvMemory& kv, const KvLayout& layout, std::span<const BlockId> block_table,
               uint32_t slots, std::span<const std::byte> bytes) {
  HIDANE_ASSERT(bytes.size() == slots * layout.token_bytes());
  const std::byte* from = bytes.data();
  ForEachRun(kv, layout, block_table, slots, [&](std::byte* rows, size_t n) {
    std::memcpy(rows, from, n);
    from += n;
  });
}

void ReadKeys(const KvMemory& kv, const KvLayout& layout, uint32_t layer, uint32_t kv_head,
              std::span<const BlockId> block_table, uint32_t first, uint32_t n,
              std::span<float> out) {
  HIDANE_ASSERT(out.size() >= size_t{n} * layout.head_dim);
  const std::byte* const keys = kv.layer(layer).k;
  float* to = out.data();
  for (uint32_t slot = first; slot < first + n; ++slot, to += layout.head_dim) {
    const uint32_t block = block_table[slot / layout.block_size].value();
    const std::byte* row = keys + layout.RowOffset(block, kv_head, slot % layout.block_size);
    if (layout.element_bytes == sizeof(float)) {
      std::memcpy(to, row, layout.row_bytes());
      continue;
    }
    for (uint32_t d = 0; d < layout.head_dim; ++d) {
      uint16_t value;
      std::memcpy(&value, row + d * sizeof value, sizeof value);
      to[d] = Bf16ToFloat(value);
    }
  }
}

}  // namespace hidane::model
