#pragma once
#include <cstddef>
#include <cstdint>

#include "model/kernels.h"
#include "model/tile.h"

namespace hidane::model {

/// Inputs of a block: 16 outputs x 32 inputs is the unit of packed weights.
inline constexpr uint32_t kBlockInputs = 32;

/// How a packed block lies in memory. All keep the 16 outputs of a panel beside each other, so that
/// one vector register holds one input's weights for 16 outputs.
enum class PanelType : uint32_t {
  kF32,   ///< [32][16] f32
  kBf16,  ///< [16][16][2] bf16: pairs of inputs
  kQ4_1,  ///< scale f16[16], minimum f16[16], [4][16] words of 8 inputs: even ones in the low half
  kQ8_0,  ///< scale f32[16], [32][16] int8
};

constexpr uint32_t BlockBytes(PanelType type) {
  switch (type) {
    case PanelType::kF32:
      return 2048;
    case PanelType::kBf16:
      return 1024;
    case PanelType::kQ4_1:
      return 320;
    case PanelType::kQ8_0:
      return 576;
  }
  return 0;
}

/// What `type` of the file becomes: quantised blocks stay quantised (same values, other order),
/// anything else is f32 or, if bf16, rounded to it.
PanelType PackedType(TensorType type, bool bf16);

/// Bytes of a matrix of rows x cols: whole panels of 16 rows.
size_t PackedBytes(PanelType type, uint32_t rows, uint32_t cols);

/// Reorders a matrix into panels [rows / 16][cols / 32] of blocks; missing rows of the last panel
/// are zero. out: PackedBytes. REQUIRES: view.cols % 32 == 0. Cost: one pass, scalar.
void PackPanels(const WeightView& view, PanelType type, std::byte* out);

/// Decodes `blocks` consecutive blocks into a GEMM's right operand: [32 * blocks][16] f32, or bf16
/// pairs. REQUIRES: the type is one that Decodes.
void DecodeF32(PanelType type, const std::byte* in, uint32_t blocks, float* out);
void DecodeBf16(PanelType type, const std::byte* in, uint32_t blocks, Bf16* out);

/// y[i][j] (+)= sum over l of x[i][l] * w[j][l] on packed quantised blocks, for few rows. Reads
/// every weight once; faster than decoding while m is small. bf16: integers go through the dot
/// products as exact bf16, scales are applied to the sums of each block; closer, since weights
/// aren't rounded. f32: weights are decoded in registers; the bits are those of DecodeF32 and
/// GemmF32.
template <class T>
struct QuantGemmArgs {
  PanelType type;
  const std::byte* w;  ///< panels one after the other
  uint32_t panels, blocks;
  const T* x;  ///< [m][32 * blocks], rows x_row apart; bf16: m up to a multiple of 16
  size_t x_row;
  const float* sums;  ///< [m][blocks]: sum of each block of x; f32: not read
  uint32_t m;
  float* y;  ///< rows ldy apart
  size_t ldy;
  bool add;
};
template <class T>
using QuantGemmFn = void (*)(const QuantGemmArgs<T>&);

void QuantGemmF32(const QuantGemmArgs<float>& args);    ///< the best Highway target
void QuantGemmAvx512(const QuantGemmArgs<Bf16>& args);  ///< REQUIRES: Isa::kAvx512Bf16
void QuantGemmAmx(const QuantGemmArgs<Bf16>& args);     ///< REQUIRES: Isa::kAmx

/// out[b] = sum of x[32 b .. 32 b + 32), for QuantGemmArgs. REQUIRES: Isa::kAvx512Bf16.
void BlockSums(const Bf16* x, uint32_t blocks, float* out);

/// False where the packed bytes are the operand itself.
constexpr bool Decodes(PanelType type) {
  return type == PanelType::kQ4_1 || type == PanelType::kQ8_0;
}

}  // namespace hidane::model
