#include "model/dequantize.h"

#include <cmath>
#include <cstring>

#include "base/assert.h"

namespace hidane::model {
namespace {

template <class T>
T LoadAt(std::span<const std::byte> data, size_t index) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof(T), sizeof value);
  return value;
}

void DecodeQ4_1(std::span<const std::byte> data, std::span<float> out) {
  for (size_t i = 0; i < out.size() / 32; ++i) {
    const auto block = LoadAt<BlockQ4_1>(data, i);
    const float scale = HalfToFloat(block.scale_f16), minimum = HalfToFloat(block.minimum_f16);
    float* to = out.data() + i * 32;
    for (size_t j = 0; j < 16; ++j) {
      to[j] = static_cast<float>(block.q[j] & 15) * scale + minimum;
      to[j + 16] = static_cast<float>(block.q[j] >> 4) * scale + minimum;
    }
  }
}

void DecodeQ8_0(std::span<const std::byte> data, std::span<float> out) {
  for (size_t i = 0; i < out.size() / 32; ++i) {
    const auto block = LoadAt<BlockQ8_0>(data, i);
    const float scale = HalfToFloat(block.scale_f16);
    for (size_t j = 0; j < 32; ++j) out[i * 32 + j] = static_cast<float>(block.q[j]) * scale;
  }
}

}  // namespace

float HalfToFloat(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t exponent = (half >> 10) & 31, mantissa = half & 0x3ff;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return __builtin_bit_cast(float, sign | (wide << 23) | (mantissa << 13));
}

uint16_t FloatToBf16(float value) {
  const auto bits = __builtin_bit_cast(uint32_t, value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

void Dequantize(TensorType type, std::span<const std::byte> data, std::span<float> out) {
  const BlockTraits traits = TraitsOf(type);
  HIDANE_ASSERT(data.size() / traits.bytes * traits.elements == out.size());
  switch (type) {
    case TensorType::kF32:
      std::memcpy(out.data(), data.data(), data.size());
      return;
    case TensorType::kF16:
      for (size_t i = 0; i < out.size(); ++i) out[i] = HalfToFloat(LoadAt<uint16_t>(data, i));
      return;
    case TensorType::kBF16:
      for (size_t i = 0; i < out.size(); ++i) out[i] = Bf16ToFloat(LoadAt<uint16_t>(data, i));
      return;
    case TensorType::kQ4_1:
      return DecodeQ4_1(data, out);
    case TensorType::kQ8_0:
      return DecodeQ8_0(data, out);
  }
}

}  // namespace hidane::model
