#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace hidane::cuda {

/// Rows [first_row, first_row + rows) of K and V, row = layer * kv_heads + kv head, go from one
/// physical slot to another. A whole sequence's, a layer's or a head's move is one of these.
struct DeviceMove {
  uint32_t first_row, rows, from, to;
};

/// What the kernel reads through fixed device addresses, so that a graph captured once replays
/// whatever the host has put there since.
struct DeviceBatch {
  uint32_t count;
  uint32_t padding[3];  // moves begin on 16 bytes
  // DeviceMove[count] follows
};

/// KV memory as KvLayout says, in the units of the kernel.
struct DeviceLayout {
  std::byte* const* arrays;  ///< device array [layers][K, V] of device pointers
  uint32_t kv_heads, block_size;
  uint32_t row_vectors;  ///< row_bytes / 16
};

/// Which 16 bytes of the KV memory thread i of a move takes: constexpr, so that a test without a
/// GPU can follow the kernel.
struct DeviceVector {
  uint32_t array;   ///< of DeviceLayout::arrays
  size_t from, to;  ///< in vectors from its start
};
constexpr DeviceVector VectorOf(const DeviceLayout& layout, const DeviceMove& move, uint32_t i) {
  const uint32_t vector = i % layout.row_vectors, kv = i / layout.row_vectors % 2;
  const uint32_t row = move.first_row + i / layout.row_vectors / 2;
  const uint32_t layer = row / layout.kv_heads, head = row % layout.kv_heads;
  const auto at = [&](uint32_t slot) {
    const size_t block_row = size_t{slot / layout.block_size} * layout.kv_heads + head;
    return (block_row * layout.block_size + slot % layout.block_size) * layout.row_vectors + vector;
  };
  return {layer * 2 + kv, at(move.from), at(move.to)};
}
constexpr uint32_t VectorsOf(const DeviceLayout& layout, const DeviceMove& move) {
  return move.rows * 2 * layout.row_vectors;
}

/// Copies the rows of every move in the batch at device address `batch`; with count 0 it does
/// nothing. Always the same grid. `blocks`: thread blocks, a multiple of what the device runs at
/// once.
cudaError_t LaunchKvMove(const DeviceLayout& layout, const DeviceBatch* batch, uint32_t blocks,
                         cudaStream_t stream);

}  // namespace hidane::cuda
