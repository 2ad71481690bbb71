#pragma once
#include <cstdint>
#include <span>

#include "model/fast_linear.h"
#include "model/kernels.h"

namespace hidane::model {

/// Kernels::Signals as attention's first GEMM once more: the same scores, bit for bit in f32, and
/// exp(score - lse) instead of a running softmax, so V is not read and nothing is scaled again.
/// A task is a kv head and a range of slots; inside it rows come in their order, so a sum has one
/// order of additions whatever the number of threads.
template <class T>
class FastSignals {
 public:
  explicit FastSignals(FastContext<T>& context) : context_(context) {}

  /// As Kernels::Signals.
  void Run(ConstRows q, uint32_t heads, float scale, const AttentionSeq& seq,
           const KvLayout& layout, const KvLayer& kv, std::span<const float> lse,
           const SlotSignals& out);

 private:
  struct Call;
  struct Work;

  void Compute(const Call& call, uint32_t kv_head, uint32_t first_slot, Scratch& scratch) const;
  void AddTile(const Call& call, const Work& work, uint32_t first_row, uint32_t slot) const;

  FastContext<T>& context_;
};

}  // namespace hidane::model
