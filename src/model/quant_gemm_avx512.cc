// Compiled for AVX-512 with bf16; called only where BestIsa() says so. No header with inline
// functions other than intrinsics may be included here: the linker might keep this file's copy for
// every CPU.
#include "model/quant_block.h"

namespace hidane::model {
namespace {

/// R rows by one panel. `S` sums a row take turns, so that few rows don't wait for each other.
template <PanelType kType, uint32_t R, uint32_t S>
void Rows(const QuantGemmArgs<Bf16>& g, const std::byte* block, uint32_t row, uint32_t panel) {
  const Bf16* x = g.x + row * g.x_row;
  float* const y = g.y + row * g.ldy + panel * kPanel;
  const float* x_sums = g.sums + size_t{row} * g.blocks;
  __m512 sum[R];
  for (uint32_t r = 0; r < R; ++r)
    sum[r] = g.add ? _mm512_loadu_ps(y + r * g.ldy) : _mm512_setzero_ps();
  for (uint32_t b = 0; b < g.blocks; ++b, block += BlockBytes(kType), x += kBlockInputs) {
    PrefetchAfter<kType>(block);
    __m512 raw[R][S];
    for (uint32_t r = 0; r < R; ++r)
      for (uint32_t s = 0; s < S; ++s) raw[r][s] = _mm512_setzero_ps();
    ForPairs<kType>(block, [&raw, x, &g](uint32_t i, __m512i pairs) {
      for (uint32_t r = 0; r < R; ++r) {
        int pair;
        __builtin_memcpy(&pair, x + r * g.x_row + 2 * i, sizeof pair);
        raw[r][i % S] =
            _mm512_dpbf16_ps(raw[r][i % S], (__m512bh)_mm512_set1_epi32(pair), (__m512bh)pairs);
      }
    });
    const BlockScale scale = ScaleOf<kType>(block);
    for (uint32_t r = 0; r < R; ++r) {
      for (uint32_t s = 1; s < S; ++s) raw[r][0] = _mm512_add_ps(raw[r][0], raw[r][s]);
      sum[r] = _mm512_fmadd_ps(raw[r][0], scale.scale, sum[r]);
      if (kType == PanelType::kQ4_1)
        sum[r] = _mm512_fmadd_ps(_mm512_set1_ps(x_sums[r * g.blocks + b]), scale.offset, sum[r]);
    }
  }
  for (uint32_t r = 0; r < R; ++r) _mm512_storeu_ps(y + r * g.ldy, sum[r]);
}

template <PanelType kType>
void Run(const QuantGemmArgs<Bf16>& g) {
  for (uint32_t panel = 0; panel < g.panels; ++panel) {
    const std::byte* const block = g.w + size_t{panel} * g.blocks * BlockBytes(kType);
    uint32_t row = 0;
    for (; row + 8 <= g.m; row += 8) Rows<kType, 8, 1>(g, block, row, panel);
    for (; row + 4 <= g.m; row += 4) Rows<kType, 4, 2>(g, block, row, panel);
    for (; row + 2 <= g.m; row += 2) Rows<kType, 2, 4>(g, block, row, panel);
    for (; row < g.m; ++row) Rows<kType, 1, 4>(g, block, row, panel);
  }
}

}  // namespace

void QuantGemmAvx512(const QuantGemmArgs<Bf16>& g) {
  if (g.type == PanelType::kQ4_1) {
    Run<PanelType::kQ4_1>(g);
  } else {
    Run<PanelType::kQ8_0>(g);
  }
}

void BlockSums(const Bf16* x, uint32_t blocks, float* out) {
  const auto ones = (__m512bh)_mm512_set1_epi16(0x3F80);
  for (uint32_t b = 0; b < blocks; ++b) {
    const auto values = (__m512bh)_mm512_loadu_si512(x + b * kBlockInputs);
    out[b] = _mm512_reduce_add_ps(_mm512_dpbf16_ps(_mm512_setzero_ps(), values, ones));
  }
}

}  // namespace hidane::model
