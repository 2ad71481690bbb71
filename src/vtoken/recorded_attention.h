#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/rng.h"
#include "vtoken/signals.h"

namespace hidane::vtoken {

/// Attention of an imagined model, for tests and benchmarks: the weight that the row at one
/// position gives to another position is a function of (layer, head, row, position) and nothing
/// else, so it can be recomputed in any chunks. Some positions are heavy everywhere; rows sum to
/// about one.
struct RecordedAttention {
  HeadShape shape;
  uint64_t seed = 1;

  float Weight(uint32_t layer, uint32_t head, uint32_t row, uint32_t position) const {
    const uint64_t token = Mix64(seed ^ Mix64(position));
    const uint64_t here =
        Mix64(token ^ Mix64((uint64_t{layer} << 40) + (uint64_t{head} << 32) + row));
    const double heavy = token % 16 == 0 ? 8.0 : 0.5;
    return static_cast<float>(heavy * static_cast<double>(here >> 40) * 0x1p-24 / (row + 1));
  }

  /// What the model does in a step of rows [first, first + n) when slot = position.
  void Add(const StepSignals& to, uint32_t first, uint32_t n) const {
    for (uint32_t layer = 0; layer < shape.layers; ++layer)
      for (uint32_t head = 0; head < shape.q_heads; ++head) {
        const size_t base = (size_t{layer} * shape.q_heads + head) * to.stride;
        for (uint32_t r = 0; r < n; ++r) AddRow(to, base, layer, head, first, r, r + 1 == n);
      }
  }

 private:
  void AddRow(const StepSignals& to, size_t base, uint32_t layer, uint32_t head, uint32_t first,
              uint32_t r, bool last) const {
    const uint32_t seen = first + r + 1;
    const float low = to.low_factor / static_cast<float>(seen);
    for (uint32_t slot = 0; slot < seen; ++slot) {
      const float weight = Weight(layer, head, first + r, slot);
      if (to.column_sum && r >= to.count_from) to.column_sum[base + slot] += weight;
      if (to.low_count && r >= to.count_from && weight < low) to.low_count[base + slot] += 1;
      if (to.window_sum && r >= to.window_from) to.window_sum[base + slot] += weight;
      if (to.last_row && last) to.last_row[base + slot] = weight;
    }
  }
};

/// Keys of the same kind: a function of (layer, KV head, position); slot = position.
struct RecordedKeys final : KeySource {
  explicit RecordedKeys(uint32_t dim, uint64_t key_seed = 2) : dim_(dim), seed_(key_seed) {}
  uint32_t head_dim() const override { return dim_; }
  void ReadKeys(uint32_t layer, uint32_t kv_head, uint32_t slots, float* out) const override {
    Rng rng(seed_ + (uint64_t{layer} << 32) + kv_head);
    for (size_t i = 0; i < size_t{slots} * dim_; ++i) out[i] = static_cast<float>(rng.Unit() - 0.4);
  }

 private:
  uint32_t dim_;
  uint64_t seed_;
};

}  // namespace hidane::vtoken
