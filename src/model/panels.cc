#include "model/panels.h"

#include <cstring>
#include <vector>

#include "base/assert.h"
#include "model/dequantize.h"

namespace hidane::model {
namespace {

constexpr uint32_t kRows = kPanel, kInputs = kBlockInputs;

/// The file's bytes of one row.
const std::byte* RowData(const WeightView& view, uint32_t row) {
  const BlockTraits traits = TraitsOf(view.type);
  return view.data + size_t{row} * (view.cols / traits.elements) * traits.bytes;
}

void PutQ4_1(const BlockQ4_1& from, uint32_t column, std::byte* block) {
  std::memcpy(block + 2 * column, &from.scale_f16, 2);
  std::memcpy(block + 2 * (kRows + column), &from.minimum_f16, 2);
  for (uint32_t word = 0; word < 4; ++word) {
    uint32_t nibbles = 0;
    for (uint32_t i = 0; i < 8; ++i) {
      const uint32_t input = 8 * word + i, byte = from.q[input % 16];
      nibbles |= (input < 16 ? byte & 15 : byte >> 4) << (i % 2 * 16 + i / 2 * 4);
    }
    std::memcpy(block + 4 * kRows + 4 * (word * kRows + column), &nibbles, 4);
  }
}

void PutQ8_0(const BlockQ8_0& from, uint32_t column, std::byte* block) {
  const float scale = HalfToFloat(from.scale_f16);
  std::memcpy(block + 4 * column, &scale, 4);
  for (uint32_t input = 0; input < kInputs; ++input)
    std::memcpy(block + 4 * kRows + input * kRows + column, &from.q[input], 1);
}

void PutFloats(const float* from, uint32_t column, PanelType type, std::byte* block) {
  for (uint32_t input = 0; input < kInputs; ++input) {
    if (type == PanelType::kF32) {
      std::memcpy(block + 4 * (input * kRows + column), from + input, 4);
    } else {
      const Bf16 value = FloatToBf16(from[input]);
      std::memcpy(block + 2 * ((input / 2 * kRows + column) * 2 + input % 2), &value, 2);
    }
  }
}

}  // namespace

PanelType PackedType(TensorType type, bool bf16) {
  if (type == TensorType::kQ4_1) return PanelType::kQ4_1;
  if (type == TensorType::kQ8_0) return PanelType::kQ8_0;
  return bf16 ? PanelType::kBf16 : PanelType::kF32;
}

size_t PackedBytes(PanelType type, uint32_t rows, uint32_t cols) {
  return size_t{(rows + kRows - 1) / kRows} * (cols / kInputs) * BlockBytes(type);
}

void PackPanels(const WeightView& view, PanelType type, std::byte* out) {
  HIDANE_ASSERT(view.cols % kInputs == 0);
  const uint32_t blocks = view.cols / kInputs;
  const BlockTraits traits = TraitsOf(view.type);
  std::vector<float> floats(Decodes(type) ? 0 : view.cols);
  std::memset(out, 0, PackedBytes(type, view.rows, view.cols));
  for (uint32_t row = 0; row < view.rows; ++row) {
    const std::byte* data = RowData(view, row);
    if (!Decodes(type))
      Dequantize(view.type, {data, view.cols / traits.elements * size_t{traits.bytes}}, floats);
    std::byte* block = out + size_t{row / kRows} * blocks * BlockBytes(type);
    for (uint32_t b = 0; b < blocks; ++b, block += BlockBytes(type)) {
      if (type == PanelType::kQ4_1) {
        PutQ4_1(reinterpret_cast<const BlockQ4_1*>(data)[b], row % kRows, block);
      } else if (type == PanelType::kQ8_0) {
        PutQ8_0(reinterpret_cast<const BlockQ8_0*>(data)[b], row % kRows, block);
      } else {
        PutFloats(floats.data() + b * kInputs, row % kRows, type, block);
      }
    }
  }
}

}  // namespace hidane::model
