#pragma once
#include <cstddef>
#include <cstdint>

#include "model/tile.h"

namespace hidane::model {

// Row and tile operations in Highway; each picks the CPU's best target at its first call. What
// they compute and their error bounds: the operations of kernels.h that use them.

void RmsNormRow(const float* x, const float* gain, size_t n, float eps, float* y);
void RopeRow(float* x, uint32_t heads, uint32_t head_dim, const float* cos_sin);
void SiluMulRow(const float* gate, const float* up, size_t n, float* out);
/// To bf16, nearest, ties to even; no NaN.
void RoundRow(const float* x, size_t n, Bf16* out);
void ScaleRow(const float* x, size_t n, float factor, float* out);

/// Slots of a tile of keys.
inline constexpr uint32_t kTileSlots = 64;

/// One panel's running softmax over the slots so far, in units of log2. A column is one query.
struct SoftmaxState {
  alignas(64) float max[kPanel];
  alignas(64) float sum[kPanel];
};

/// Takes the scores [64][16] of the next 64 slots into `state` and leaves the probabilities,
/// exp2(score - new max), in `probs` as the right operand of the next GEMM: [64][16] f32 (may be
/// `scores`), or bf16 pairs [32][16][2]. Column j sees the tile's slots below limits[j] whose bit
/// in `dead` is not set. Rows of `out` ([rows][16], the sums so far) are scaled to the new maximum.
void SoftmaxTile(const float* scores, const int32_t* limits, uint64_t dead, SoftmaxState& state,
                 float* out, uint32_t rows, float* probs);
void SoftmaxTile(const float* scores, const int32_t* limits, uint64_t dead, SoftmaxState& state,
                 float* out, uint32_t rows, Bf16* probs);

/// scores[s][j] = exp2(scores[s][j] - lse[j]) for a tile of slots, [64][16], of known sums.
void ProbabilityTile(float* scores, const float* lse);

/// Joins the state and sums of a later range of slots to an earlier one's.
void SoftmaxMerge(SoftmaxState& state, float* out, uint32_t rows, const SoftmaxState& later,
                  const float* later_out);

/// out[i][j] /= state.sum[j].
void SoftmaxFinish(const SoftmaxState& state, float* out, uint32_t rows);

/// The state of no slots: finite, so that differences of maxima are.
inline constexpr float kNoMax = -1e30F;

}  // namespace hidane::model
