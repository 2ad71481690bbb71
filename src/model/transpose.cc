#include "model/tile.h"

namespace hidane::model {

void Transpose16(const uint32_t* src, size_t src_stride, uint32_t cols, uint32_t* dst,
                 size_t dst_stride) {
  for (uint32_t j = 0; j < cols; ++j)
    for (uint32_t i = 0; i < 16; ++i) dst[j * dst_stride + i] = src[i * src_stride + j];
}

}  // namespace hidane::model
