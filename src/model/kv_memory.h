#pragma once
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "model/kernels.h"
#include "model/kv_layout.h"

namespace hidane::model {

/// The K and V arrays of all layers, one anonymous mapping; pages cost memory when first written.
/// Move-only. Every array starts on a cache line.
class KvMemory {
 public:
  /// kResourceExhausted if it can't be had (or its size does not fit an address).
  static Result<KvMemory> Allocate(const KvLayout& layout, uint32_t blocks);

  KvMemory(KvMemory&& other) noexcept;
  KvMemory& operator=(KvMemory&&) = delete;
  ~KvMemory();

  KvLayer layer(uint32_t index) const {
    std::byte* k = base_ + size_t{index} * 2 * array_bytes_;
    return {k, k + array_bytes_};
  }

 private:
  KvMemory(std::byte* base, size_t array_bytes, size_t total_bytes)
      : base_(base), array_bytes_(array_bytes), total_bytes_(total_bytes) {}

  std::byte* base_;
  size_t array_bytes_, total_bytes_;
};

}  // namespace hidane::model
