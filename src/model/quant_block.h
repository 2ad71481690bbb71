#pragma once
#include <immintrin.h>

#include "model/panels.h"

// For files compiled for AVX-512 only. Everything is in an unnamed namespace: no copy of it may be
// shared with code for other CPUs.
namespace hidane::model {
namespace {

/// What turns a block's integers into weights: w = scale * (integer as stored) + offset.
struct BlockScale {
  __m512 scale, offset;
};

inline __m512 Halves(const std::byte* at) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
}

/// Pair `pair` of 16 of a Q4_1 block as bf16 128 + q: exact, and made by or-ing q into the
/// mantissa.
constexpr int kQ4Bias = 128;
inline __m512i Q4Pair(__m512i word, uint32_t shift) {
  const __m512i mask = _mm512_set1_epi32(0x000F000F), bias = _mm512_set1_epi32(0x43004300);
  constexpr int kAndOr = 0xEA;  // (a & b) | c
  return _mm512_ternarylogic_epi32(_mm512_srli_epi32(word, shift), mask, bias, kAndOr);
}

/// Sixteen int8 as f32.
inline __m512 Bytes(const std::byte* at) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))));
}

/// Word 2i = the upper half of even's lane i, word 2i + 1 = of odd's.
inline __m512i UpperHalves(__m512 even, __m512 odd) {
  const __m512i pick =
      _mm512_set_epi16(63, 31, 61, 29, 59, 27, 57, 25, 55, 23, 53, 21, 51, 19, 49, 17, 47, 15, 45,
                       13, 43, 11, 41, 9, 39, 7, 37, 5, 35, 3, 33, 1);
  return _mm512_permutex2var_epi16((__m512i)even, pick, (__m512i)odd);
}

template <PanelType kType>
inline BlockScale ScaleOf(const std::byte* block) {
  if constexpr (kType == PanelType::kQ4_1) {
    const __m512 scale = Halves(block);
    return {scale, _mm512_fnmadd_ps(_mm512_set1_ps(kQ4Bias), scale, Halves(block + 32))};
  } else {
    return {_mm512_loadu_ps(block), _mm512_setzero_ps()};
  }
}

/// fn(i, pairs): the block's integers, inputs 2i and 2i + 1 of 16 outputs, as bf16 pairs.
template <PanelType kType, class Fn>
inline __attribute__((always_inline)) void ForPairs(const std::byte* block, Fn fn) {
  const std::byte* const data = block + 64;
  if constexpr (kType == PanelType::kQ4_1) {
#pragma GCC unroll 4
    for (uint32_t word = 0; word < 4; ++word) {
      const __m512i nibbles = _mm512_loadu_si512(data + 64 * word);
#pragma GCC unroll 4
      for (uint32_t i = 0; i < 4; ++i) fn(4 * word + i, Q4Pair(nibbles, 4 * i));
    }
  } else {
#pragma GCC unroll 16
    for (uint32_t i = 0; i < 16; ++i)
      fn(i, UpperHalves(Bytes(data + 2 * kPanel * i), Bytes(data + 2 * kPanel * i + kPanel)));
  }
}

/// Asks for what comes about 2 KB after `block`.
template <PanelType kType>
inline void PrefetchAfter(const std::byte* block) {
  for (uint32_t at = 0; at < BlockBytes(kType); at += 64)
    _mm_prefetch(reinterpret_cast<const char*>(block) + 6 * BlockBytes(kType) + at, _MM_HINT_T0);
}

}  // namespace
}  // namespace hidane::model
