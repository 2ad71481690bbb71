// Compiled for AVX-512 with bf16; called only where BestIsa() says so. No header with inline
// functions other than intrinsics may be included here: the linker might keep this file's copy for
// every CPU.
#include <immintrin.h>

#include "model/tile.h"

namespace hidane::model {
namespace {

/// Transposes r as a 16 x 16 matrix: neighbours by 1, 2, 4 and 8 rows change places in turn.
inline void Transpose(__m512i r[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {  // r[i + j]: column j of every 4 x 4 block
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    const __m512i even_low = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    const __m512i odd_low = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xDD);
    const __m512i even_high = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    const __m512i odd_high = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xDD);
    t[i] = _mm512_shuffle_i32x4(even_low, even_high, 0x88);
    t[i + 8] = _mm512_shuffle_i32x4(even_low, even_high, 0xDD);
    t[i + 4] = _mm512_shuffle_i32x4(odd_low, odd_high, 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(odd_low, odd_high, 0xDD);
  }
  for (int i = 0; i < 16; ++i) r[i] = t[i];
}

}  // namespace

void Transpose16Avx512(const uint32_t* src, size_t src_stride, uint32_t cols, uint32_t* dst,
                       size_t dst_stride) {
  for (uint32_t j = 0; j < cols; j += 16) {
    __m512i r[16];
    for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(src + i * src_stride + j);
    Transpose(r);
    for (int i = 0; i < 16; ++i) _mm512_storeu_si512(dst + (j + i) * dst_stride, r[i]);
  }
}

void TransposeBf16(const Bf16* src, uint32_t rows, uint32_t cols, Bf16* dst) {
  // Word 2i of the result = word first + i of row 2p, word 2i + 1 = the same of row 2p + 1.
  alignas(64) uint16_t index[2][32];
  for (int i = 0; i < 16; ++i)
    for (int half = 0; half < 2; ++half) {
      index[half][2 * i] = static_cast<uint16_t>(16 * half + i);
      index[half][2 * i + 1] = static_cast<uint16_t>(32 + 16 * half + i);
    }
  for (uint32_t row = 0; row < rows; row += 32) {
    for (uint32_t column = 0; column < cols; column += 16) {
      const __m512i pick = _mm512_load_si512(index[column / 16 % 2]);
      const Bf16* from = src + size_t{row} * cols + column / 32 * 32;
      __m512i r[16];
      for (int pair = 0; pair < 16; ++pair, from += 2 * cols)
        r[pair] = _mm512_permutex2var_epi16(_mm512_loadu_si512(from), pick,
                                            _mm512_loadu_si512(from + cols));
      Transpose(r);
      for (int i = 0; i < 16; ++i) _mm512_storeu_si512(dst + size_t{column + i} * rows + row, r[i]);
    }
  }
}

}  // namespace hidane::model
