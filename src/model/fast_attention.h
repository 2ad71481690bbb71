#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "model/fast_linear.h"
#include "model/kernels.h"

namespace hidane::model {

/// Kernels::Attention as two GEMMs and a softmax per tile of 64 slots (FlashAttention's order),
/// with queries as columns: every lane is one (row, query head), so rows never mix.
///
///     scores [slots][queries] = K [slots][D] x Q' [D][queries]
///     sums   [D][queries]    += V' [D][slots] x probabilities [slots][queries]
///
/// A task is a kv head of up to 64 rows of one sequence with all query heads that share it, so a
/// tile of K and V is found once for them: f32 rows where they lie, bf16 rows copied together. The
/// context is cut every 512 slots, each cut is summed for itself, and the sums are joined in order;
/// where rows are few, the cuts are tasks of their own. The cuts depend on slot numbers alone,
/// hence so do a row's bits in f32. Dead slots are masked, and tiles of nothing else left out. In
/// bf16 a single row (decode) leaves tiles aside and takes RowAttentionBf16. Source: Dao et al.
/// 2022; Dao et al. 2023 ("Flash-Decoding") for the split.
template <class T>
class FastAttention {
 public:
  explicit FastAttention(FastContext<T>& context) : context_(context) {}

  /// As Kernels::Attention.
  void Run(ConstRows q, uint32_t heads, float scale, std::span<const AttentionSeq> seqs,
           const KvLayout& layout, const KvLayer& kv, Rows out, std::span<float> lse);

 private:
  struct Task {
    uint32_t seq, kv_head, row, rows;  ///< rows counted within the sequence
    uint32_t first_cut, cuts;
    int64_t partial;  ///< index of its first panel in the partial sums, or -1
  };
  struct Call;
  struct Work;
  struct Tile;

  void Plan(const Call& call);
  void Compute(const Call& call, const Task& task, Scratch& scratch);
  void SumCut(const Call& call, const Task& task, const Work& work, uint32_t cut,
              float* sums) const;
  void SumRow(const Call& call, const Task& task, const Work& work, uint32_t first, uint32_t end,
              float* sums) const;
  void SumTile(const Call& call, const Work& work, Tile& tile, uint32_t panels, float* sums) const;
  void JoinCuts(const Call& call, const Task& first);
  void Write(const Call& call, const Task& task, float* sums, float* rows) const;

  FastContext<T>& context_;
  std::vector<Task> tasks_;
  std::vector<uint32_t> joins_;  ///< tasks_ whose cuts are tasks: the first of each
};

}  // namespace hidane::model
