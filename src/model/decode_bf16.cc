// Compiled for AVX-512 with bf16; called only where BestIsa() says so. No header with inline
// functions other than intrinsics may be included here: the linker might keep this file's copy for
// every CPU.
#include "model/quant_block.h"

namespace hidane::model {
namespace {

/// Two inputs' weights of 16 outputs, side by side as dot products take them; rounded to nearest,
/// ties away from zero. Cheaper than the conversion instruction, which needs a shuffle besides.
inline __m512i Pair(__m512 even, __m512 odd) {
  const __m512i half = _mm512_set1_epi32(0x8000);
  return UpperHalves((__m512)_mm512_add_epi32((__m512i)even, half),
                     (__m512)_mm512_add_epi32((__m512i)odd, half));
}

void DecodeQ4_1(const std::byte* in, uint32_t blocks, Bf16* out) {
  const __m512i low = _mm512_set1_epi32(15);
  for (; blocks > 0; --blocks, in += BlockBytes(PanelType::kQ4_1)) {
    const __m512 scale = Halves(in), minimum = Halves(in + 32);
    for (uint32_t word = 0; word < 4; ++word) {
      const __m512i nibbles = _mm512_loadu_si512(in + 64 + 64 * word);
      for (uint32_t i = 0; i < 4; ++i, out += 2 * kPanel) {
        const __m512i even = _mm512_and_si512(_mm512_srli_epi32(nibbles, 4 * i), low);
        const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(nibbles, 4 * i + 16), low);
        const __m512 w0 = _mm512_fmadd_ps(_mm512_cvtepi32_ps(even), scale, minimum);
        const __m512 w1 = _mm512_fmadd_ps(_mm512_cvtepi32_ps(odd), scale, minimum);
        _mm512_storeu_si512(out, Pair(w0, w1));
      }
    }
  }
}

void DecodeQ8_0(const std::byte* in, uint32_t blocks, Bf16* out) {
  for (; blocks > 0; --blocks, in += BlockBytes(PanelType::kQ8_0)) {
    const __m512 scale = _mm512_loadu_ps(in);
    for (uint32_t k = 0; k < kBlockInputs; k += 2, out += 2 * kPanel) {
      const __m512 w0 = _mm512_mul_ps(Bytes(in + 64 + kPanel * k), scale);
      const __m512 w1 = _mm512_mul_ps(Bytes(in + 64 + kPanel * (k + 1)), scale);
      _mm512_storeu_si512(out, Pair(w0, w1));
    }
  }
}

}  // namespace

void DecodeBf16(PanelType type, const std::byte* in, uint32_t blocks, Bf16* out) {
  if (type == PanelType::kQ4_1) DecodeQ4_1(in, blocks, out);
  if (type == PanelType::kQ8_0) DecodeQ8_0(in, blocks, out);
}

}  // namespace hidane::model
