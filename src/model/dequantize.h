#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/gguf.h"

namespace hidane::model {

/// 32 values as `scale * q + minimum`, q in 0..15; byte i holds value i (low nibble) and 16 + i.
/// Source: GGUF tensor type 3.
struct BlockQ4_1 {
  uint16_t scale_f16, minimum_f16;
  uint8_t q[16];
};
static_assert(sizeof(BlockQ4_1) == 20);

/// 32 values as `scale * q`. Source: GGUF tensor type 8.
struct BlockQ8_0 {
  uint16_t scale_f16;
  int8_t q[32];
};
static_assert(sizeof(BlockQ8_0) == 34);

float HalfToFloat(uint16_t half);

inline float Bf16ToFloat(uint16_t value) {
  const uint32_t bits = uint32_t{value} << 16;
  return __builtin_bit_cast(float, bits);
}

/// Nearest bf16, ties to even; NaN stays NaN.
uint16_t FloatToBf16(float value);

/// Decodes whole blocks of `type` into f32. REQUIRES: data.size() is exactly the blocks of
/// out.size() values. Pure; the same values as the format's definition, rounded once to f32.
void Dequantize(TensorType type, std::span<const std::byte> data, std::span<float> out);

}  // namespace hidane::model
