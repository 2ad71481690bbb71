#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "model/kernels.h"
#include "model/tile.h"
#include "model/vector_ops.h"

/// What attention and its signals share: a tile of keys, and queries as the columns of a panel.
namespace hidane::model {

inline constexpr float kLog2E = 1.4426950408889634F;
inline constexpr uint32_t kTaskRows = 64;  ///< rows of one sequence taken at once

inline uint32_t CeilDiv(uint32_t a, uint32_t b) {
  return (a + b - 1) / b;
}

/// The rows of one kv head in slots first .. first + n, wherever their blocks are; zero up to a
/// whole tile, since a probability of 0 does not hide a NaN.
template <class T>
void GatherTile(const std::byte* base, const KvLayout& layout, std::span<const BlockId> table,
                uint32_t kv_head, uint32_t first, uint32_t n, T* out) {
  const uint32_t block_size = layout.block_size;
  for (uint32_t slot = first; slot < first + n;) {
    const uint32_t offset = slot % block_size;
    const uint32_t run = std::min(block_size - offset, first + n - slot);
    const BlockId block = table[slot / block_size];
    std::memcpy(out, base + layout.RowOffset(block.value(), kv_head, offset),
                run * layout.row_bytes());
    out += size_t{run} * layout.head_dim;
    slot += run;
  }
  std::fill_n(out, size_t{kTileSlots - n} * layout.head_dim, T{0});
}

/// Where those rows lie, of f32: n of K, then n of V.
inline void PointToTile(const KvLayer& kv, const KvLayout& layout, std::span<const BlockId> table,
                        uint32_t kv_head, uint32_t first, uint32_t n, const float** rows) {
  const uint32_t block_size = layout.block_size;
  for (uint32_t i = 0; i < n;) {
    const uint32_t offset = (first + i) % block_size;
    const uint32_t end = std::min(n, i + block_size - offset);
    const BlockId block = table[(first + i) / block_size];
    for (size_t at = layout.RowOffset(block.value(), kv_head, offset); i < end;
         ++i, at += layout.row_bytes()) {
      rows[i] = reinterpret_cast<const float*>(kv.k + at);
      rows[n + i] = reinterpret_cast<const float*>(kv.v + at);
    }
  }
}

/// Asks for the rows that GatherTile will read next.
inline void PrefetchTile(const std::byte* base, const KvLayout& layout,
                         std::span<const BlockId> table, uint32_t kv_head, uint32_t first,
                         uint32_t n) {
  for (uint32_t slot = first; slot < first + n; ++slot) {
    const BlockId block = table[slot / layout.block_size];
    const std::byte* const row =
        base + layout.RowOffset(block.value(), kv_head, slot % layout.block_size);
    for (size_t at = 0; at < layout.row_bytes(); at += kLine)
      __builtin_prefetch(row + at, /*rw=*/0, /*locality=*/2);
  }
}

/// Up to kTaskRows rows of one sequence, of the query heads that share a kv head. Columns are
/// (row, head) with the head running fastest.
struct QueryColumns {
  ConstRows q;
  uint32_t first_row;  ///< of the columns, in the step
  uint32_t rows;
  uint32_t kv_head, group;  ///< query heads of a kv head
  uint32_t dim;
  uint32_t slots;  ///< that the first row reads

  uint32_t count() const { return rows * group; }
  uint32_t panels() const { return CeilDiv(count(), kPanel); }
  uint32_t head(uint32_t column) const { return kv_head * group + column % group; }
};

/// The queries as right operands of a GEMM, in units of log2; limits[column] = slots that the
/// column reads. What is left of the last panel sees no slot. buffer: [16][dim] f32.
template <class T>
void PackQueries(const QueryColumns& columns, float scale, float* buffer, T* queries,
                 int32_t* limits) {
  const uint32_t dim = columns.dim;
  T* const rows = reinterpret_cast<T*>(buffer);
  float* const scaled = buffer + kPanel / 2 * dim;  // behind the bf16 rows
  constexpr uint32_t kPerWord = sizeof(uint32_t) / sizeof(T);
  for (uint32_t first = 0; first < columns.count(); first += kPanel) {
    for (uint32_t c = 0; c < kPanel; ++c) {
      const uint32_t column = first + c, row = column / columns.group;
      T* const to = rows + c * dim;
      if (column >= columns.count()) {
        std::fill_n(to, dim, T{0});
        limits[column] = 0;
        continue;
      }
      const float* from = columns.q.row(columns.first_row + row) + columns.head(column) * dim;
      if constexpr (std::is_same_v<T, float>) {
        ScaleRow(from, dim, scale * kLog2E, to);
      } else {
        ScaleRow(from, dim, scale * kLog2E, scaled);
        RoundRow(scaled, dim, to);
      }
      limits[column] = static_cast<int32_t>(columns.slots + row);
    }
    const auto transpose = kPerWord == 2 ? Transpose16Avx512 : Transpose16;
    transpose(reinterpret_cast<const uint32_t*>(rows), dim / kPerWord, dim / kPerWord,
              reinterpret_cast<uint32_t*>(queries + size_t{first} * dim), kPanel);
  }
}

}  // namespace hidane::model
