// Compiled for AVX-512 with bf16; called only where BestIsa() says so. No header with inline
// functions other than intrinsics may be included here: the linker might keep this file's copy for
// every CPU.
#include "model/row_attention.h"

#include <immintrin.h>

namespace hidane::model {
namespace {

constexpr uint32_t kStep = 32;  // bf16 in a register
constexpr uint32_t kLanes = 16;
constexpr uint32_t kColumns = 4;  // at once
constexpr uint32_t kSlots = kRowAttentionSlots;

struct Scratch {
  alignas(64) float scores[kColumns][kSlots];
  alignas(64) Bf16 probs[kColumns][kSlots];
};

inline __m512bh Load(const Bf16* at) {
  return (__m512bh)_mm512_loadu_si512(at);
}

/// The four registers' sums over lanes, side by side.
inline __m128 SumLanes(__m512 a, __m512 b, __m512 c, __m512 d) {
  const __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  const __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
  const __m512 low = _mm512_shuffle_ps(ab, cd, 0x44), high = _mm512_shuffle_ps(ab, cd, 0xEE);
  const __m512 all = _mm512_add_ps(low, high);
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
  return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

inline void Prefetch(const Bf16* row, uint32_t dim) {
  for (uint32_t d = 0; d < dim; d += kStep)
    _mm_prefetch(reinterpret_cast<const char*>(row + d), _MM_HINT_T0);
}

/// scores[c][s] = q[c] . k[s]. V is fetched meanwhile: it is read next, and its rows are scattered.
template <uint32_t C>
void Scores(const RowAttentionArgs& args, const Bf16* q, Scratch& scratch) {
  constexpr uint32_t kRows = 4;
  for (uint32_t s = 0; s < args.slots; s += kRows) {
    __m512 sum[C][kRows] = {};
    for (uint32_t j = 0; j < kRows; ++j) {
      Prefetch(args.k[s + j + 8], args.dim);
      Prefetch(args.v[s + j], args.dim);
    }
    for (uint32_t d = 0; d < args.dim; d += kStep) {
      __m512bh query[C];
      for (uint32_t c = 0; c < C; ++c) query[c] = Load(q + c * args.dim + d);
      for (uint32_t j = 0; j < kRows; ++j) {
        const __m512bh key = Load(args.k[s + j] + d);
        for (uint32_t c = 0; c < C; ++c) sum[c][j] = _mm512_dpbf16_ps(sum[c][j], query[c], key);
      }
    }
    for (uint32_t c = 0; c < C; ++c)
      _mm_store_ps(scratch.scores[c] + s, SumLanes(sum[c][0], sum[c][1], sum[c][2], sum[c][3]));
  }
}

/// 2^x for x <= 0: the Taylor series of 2^r, |r| <= 1/2, to degree 6; relative error < 2^-22.
inline __m512 Exp2(__m512 x) {
  const __m512 whole = _mm512_roundscale_ps(x, 0), r = _mm512_sub_ps(x, whole);
  __m512 p = _mm512_set1_ps(1.5403530393381609954e-4F);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.3333558146428443423e-3F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(9.6181291076284771620e-3F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.5504108664821579953e-2F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.4022650695910071233e-1F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.9314718055994530942e-1F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
  return _mm512_scalef_ps(p, whole);
}

/// Scores to probabilities of one column; slots past the end get 0.
void Softmax(uint32_t slots, float* scores, Bf16* probs, float& max_out, float& sum_out) {
  const auto mask = [slots](uint32_t s) {
    return slots - s >= kLanes ? __mmask16(0xFFFF) : __mmask16((1u << (slots - s)) - 1);
  };
  __m512 max = _mm512_set1_ps(-__builtin_inff());
  for (uint32_t s = 0; s < slots; s += kLanes)
    max = _mm512_mask_max_ps(max, mask(s), max, _mm512_load_ps(scores + s));
  max_out = _mm512_reduce_max_ps(max);
  max = _mm512_set1_ps(max_out);
  __m512 sum = _mm512_setzero_ps();
  for (uint32_t s = 0; s < slots; s += kLanes) {
    const __m512 below = _mm512_sub_ps(_mm512_load_ps(scores + s), max);
    const __m512 p = _mm512_maskz_mov_ps(mask(s), Exp2(below));
    sum = _mm512_add_ps(sum, p);
    _mm256_store_si256(reinterpret_cast<__m256i*>(probs + s), (__m256i)_mm512_cvtneps_pbh(p));
  }
  sum_out = _mm512_reduce_add_ps(sum);
}

/// sums[first + d][c] for d < 32 * W: two slots at a time, their rows interleaved to pairs.
template <uint32_t C, uint32_t W>
void Values(const RowAttentionArgs& args, uint32_t first, const Scratch& scratch, float* sums) {
  __m512 sum[C][2 * W] = {};
  for (uint32_t s = 0; s < args.slots; s += 2) {
    __m512bh pair[2 * W];
    for (uint32_t w = 0; w < W; ++w) {
      const __m512i even = _mm512_loadu_si512(args.v[s] + first + w * kStep);
      const __m512i odd = _mm512_loadu_si512(args.v[s + 1] + first + w * kStep);
      pair[2 * w] = (__m512bh)_mm512_unpacklo_epi16(even, odd);
      pair[2 * w + 1] = (__m512bh)_mm512_unpackhi_epi16(even, odd);
    }
    for (uint32_t c = 0; c < C; ++c) {
      int two;
      __builtin_memcpy(&two, scratch.probs[c] + s, sizeof two);
      const __m512bh p = (__m512bh)_mm512_set1_epi32(two);
      for (uint32_t i = 0; i < 2 * W; ++i) sum[c][i] = _mm512_dpbf16_ps(sum[c][i], pair[i], p);
    }
  }
  for (uint32_t c = 0; c < C; ++c) {
    for (uint32_t i = 0; i < 2 * W; ++i) {
      alignas(64) float lanes[kLanes];
      _mm512_store_ps(lanes, sum[c][i]);
      for (uint32_t lane = 0; lane < kLanes; ++lane) {  // unpack works within 128 bits
        const uint32_t d = first + i / 2 * kStep + lane / 4 * 8 + i % 2 * 4 + lane % 4;
        sums[d * args.sums_stride + c] = lanes[lane];
      }
    }
  }
}

template <uint32_t C>
void Columns(const RowAttentionArgs& args, uint32_t column) {
  Scratch scratch;
  Scores<C>(args, args.q + column * args.dim, scratch);
  for (uint32_t c = 0; c < C; ++c)
    Softmax(args.slots, scratch.scores[c], scratch.probs[c], args.max[column + c],
            args.sum[column + c]);
  uint32_t d = 0;
  for (; d + 2 * kStep <= args.dim; d += 2 * kStep)
    Values<C, 2>(args, d, scratch, args.sums + column);
  if (d < args.dim) Values<C, 1>(args, d, scratch, args.sums + column);
}

}  // namespace

void RowAttentionBf16(const RowAttentionArgs& args) {
  for (uint32_t column = 0; column < args.columns;) {
    const uint32_t left = args.columns - column;
    if (left >= 4) {
      Columns<4>(args, column);
    } else if (left == 3) {
      Columns<3>(args, column);
    } else if (left == 2) {
      Columns<2>(args, column);
    } else {
      Columns<1>(args, column);
    }
    column += left < kColumns ? left : kColumns;
  }
}

}  // namespace hidane::model
