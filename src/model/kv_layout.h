#pragma once
#include <cstddef>
#include <cstdint>

namespace hidane::model {

/// How one KV block lies in memory; the only place that knows. A block holds `block_size` slots of
/// every layer; per layer, K and V each are
///     [block][kv_head][slot][head_dim]            rows of head_dim elements, contiguous.
/// `slot` in a block table's sense is block * block_size + offset; kernels see plain arrays: the
/// block table of a sequence and its length.
struct KvLayout {
  uint32_t layers = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t block_size = 16;    ///< B, slots in a block
  uint32_t element_bytes = 2;  ///< 2 = bf16 (default), 4 = f32 (tests)

  size_t row_bytes() const { return size_t{head_dim} * element_bytes; }
  size_t block_bytes() const {
    return size_t{kv_heads} * block_size * row_bytes();
  }  ///< one layer, K or V
  size_t token_bytes() const { return size_t{layers} * 2 * kv_heads * row_bytes(); }
  /// Byte offset of a row inside one layer's K (or V) array.
  size_t RowOffset(uint32_t block, uint32_t kv_head, uint32_t offset) const {
    return block * block_bytes() + (size_t{kv_head} * block_size + offset) * row_bytes();
  }
};

}  // namespace hidane::model
