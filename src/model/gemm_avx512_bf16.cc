// Compiled for AVX-512 with bf16; called only where BestIsa() says so. No header with inline
// functions other than intrinsics may be included here: the linker might keep this file's copy for
// every CPU.
#include <immintrin.h>

#include "model/tile.h"

namespace hidane::model {
namespace {

/// R rows and P panels of c in registers.
template <uint32_t R, uint32_t P>
void Block(const GemmArgs<Bf16>& g, const Bf16* a, const Bf16* b, float* c) {
  const size_t panel = size_t{g.k} * kPanel;
  __m512 sum[R][P];
  for (uint32_t i = 0; i < R; ++i)
    for (uint32_t p = 0; p < P; ++p)
      sum[i][p] = g.add ? _mm512_loadu_ps(c + i * g.ldc + p * kPanel) : _mm512_setzero_ps();
  for (uint32_t l = 0; l < g.k; l += 2, b += 2 * kPanel) {
    __m512bh right[P];
    for (uint32_t p = 0; p < P; ++p) right[p] = (__m512bh)_mm512_loadu_si512(b + p * panel);
    for (uint32_t i = 0; i < R; ++i) {
      int pair;
      __builtin_memcpy(&pair, a + i * g.a_row + l, sizeof pair);
      const auto left = (__m512bh)_mm512_set1_epi32(pair);
      for (uint32_t p = 0; p < P; ++p) sum[i][p] = _mm512_dpbf16_ps(sum[i][p], left, right[p]);
    }
  }
  for (uint32_t i = 0; i < R; ++i)
    for (uint32_t p = 0; p < P; ++p) _mm512_storeu_ps(c + i * g.ldc + p * kPanel, sum[i][p]);
}

template <uint32_t P>
void Columns(const GemmArgs<Bf16>& g, uint32_t panel) {
  const Bf16* const b = g.b + size_t{panel} * g.k * kPanel;
  uint32_t i = 0;
  const auto rows = [&](auto block, uint32_t n) {
    for (; i + n <= g.m; i += n) block(g, g.a + i * g.a_row, b, g.c + i * g.ldc + panel * kPanel);
  };
  rows(Block<8, P>, 8);
  rows(Block<4, P>, 4);
  rows(Block<2, P>, 2);
  rows(Block<1, P>, 1);
}

}  // namespace

void GemmBf16Avx512(const GemmArgs<Bf16>& g) {
  uint32_t panel = 0;
  for (; panel + 2 <= g.panels; panel += 2) Columns<2>(g, panel);
  if (panel < g.panels) Columns<1>(g, panel);
}

}  // namespace hidane::model
