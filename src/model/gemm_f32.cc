#include "model/panels.h"
#include "model/tile.h"

// AVX2 and AVX-512; the baseline is one lane. What lies between is not worth its build time.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/gemm_f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hidane::model {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::CappedTag<float, kPanel>;
using Vec = hn::Vec<F>;
constexpr F f;
constexpr hn::RebindToSigned<F> i32;
constexpr size_t kLanes = HWY_LANES(float) < kPanel ? HWY_LANES(float) : kPanel;
constexpr uint32_t kVectors = kPanel / kLanes;  // of a panel's row
constexpr uint32_t kSums = kLanes == 1 ? 96 : 12;  // registers of sums, of 32 or 16

// Blocks of sums live in registers only if these loops are unrolled early.
#define HIDANE_UNROLL _Pragma("GCC unroll 16")

/// R rows of P panels, the first V vectors of each.
template <uint32_t R, uint32_t P, uint32_t V>
HWY_INLINE void GemmBlock(const GemmArgs<float>& g, uint32_t row, uint32_t panel) {
  constexpr uint32_t kWide = P * V;
  const float* a = g.a + row * g.a_row;
  const float* b = g.b + size_t{panel} * g.k * kPanel;
  float* const c = g.c + row * g.ldc + panel * kPanel;
  const auto at = [c, &g](uint32_t i) HWY_ATTR {
    return c + i / kWide * g.ldc + i % kWide / V * kPanel + i % V * kLanes;
  };
  Vec sum[R * kWide];
  HIDANE_UNROLL for (uint32_t i = 0; i < R * kWide; ++i) {
    sum[i] = g.add ? hn::LoadU(f, at(i)) : hn::Zero(f);
  }
  for (uint32_t l = 0; l < g.k; ++l, a += g.a_col, b += kPanel) {
    Vec right[kWide];
    HIDANE_UNROLL for (uint32_t v = 0; v < kWide; ++v) {
      right[v] = hn::LoadU(f, b + size_t{v / V} * g.k * kPanel + v % V * kLanes);
    }
    HIDANE_UNROLL for (uint32_t i = 0; i < R * kWide; ++i) {
      sum[i] = hn::MulAdd(hn::Set(f, a[i / kWide * g.a_row]), right[i % kWide], sum[i]);
    }
  }
  HIDANE_UNROLL for (uint32_t i = 0; i < R * kWide; ++i) hn::StoreU(sum[i], f, at(i));
}

/// All panels of the rows from `row` on, R at a time; the rows left are fewer. A sum waits for the
/// one before: the fewer rows, the more panels side by side keep the multipliers busy.
template <uint32_t R, uint32_t V>
HWY_INLINE void GemmBand(const GemmArgs<float>& g, uint32_t& row) {
  constexpr uint32_t kMost = kSums / V / R, kAtOnce = kMost < 1 ? 1 : kMost < 6 ? kMost : 6;
  const uint32_t end = g.m - (g.m - row) % R;
  uint32_t panel = 0;
  for (; panel + kAtOnce <= g.panels; panel += kAtOnce)
    for (uint32_t r = row; r < end; r += R) GemmBlock<R, kAtOnce, V>(g, r, panel);
  for (; panel < g.panels; ++panel)
    for (uint32_t r = row; r < end; r += R) GemmBlock<R, 1, V>(g, r, panel);
  row = end;
}

template <uint32_t V>
void Gemm(const GemmArgs<float>& g) {
  uint32_t row = 0;
  GemmBand<kSums / V, V>(g, row);
  GemmBand<4, V>(g, row);
  GemmBand<2, V>(g, row);
  GemmBand<1, V>(g, row);
}

void GemmT(const GemmArgs<float>& g) {
  if (g.columns <= kLanes) {
    Gemm<1>(g);
  } else {
    Gemm<kVectors>(g);
  }
}

/// kLanes columns of a block of 32 inputs, from column `lane` on.
HWY_INLINE void DecodeQ8_0(const std::byte* in, uint32_t lane, float* out) {
  const hn::Rebind<int8_t, F> i8;
  const auto* const q = reinterpret_cast<const int8_t*>(in + 4 * kPanel) + lane;
  const Vec scale = hn::LoadU(f, reinterpret_cast<const float*>(in) + lane);
  HIDANE_UNROLL for (uint32_t k = 0; k < kBlockInputs; ++k) {
    const auto value = hn::PromoteTo(i32, hn::LoadU(i8, q + k * kPanel));
    hn::StoreU(hn::Mul(hn::ConvertTo(f, value), scale), f, out + k * kPanel + lane);
  }
}

/// A nibble is not shifted down: its scale is that much smaller. Integer times scale is exact (4
/// and 11 bits), so the fused sum rounds once, as the scalar decoder's does.
HWY_INLINE void DecodeQ4_1(const std::byte* in, uint32_t lane, float* out) {
  const hn::Rebind<hwy::float16_t, F> f16;
  const auto* const halves = reinterpret_cast<const hwy::float16_t*>(in) + lane;
  const Vec minimum = hn::PromoteTo(f, hn::LoadU(f16, halves + kPanel));
  Vec scale[4] = {hn::PromoteTo(f, hn::LoadU(f16, halves))};
  HIDANE_UNROLL for (uint32_t i = 1; i < 4; ++i) {
    scale[i] = hn::Mul(scale[i - 1], hn::Set(f, 0.0625F));
  }
  const auto* const words = reinterpret_cast<const int32_t*>(in + 4 * kPanel) + lane;
  for (uint32_t word = 0; word < kBlockInputs / 8; ++word) {
    const auto even = hn::LoadU(i32, words + word * kPanel), odd = hn::ShiftRight<16>(even);
    HIDANE_UNROLL for (uint32_t k = 0; k < 8; ++k) {
      const auto q = hn::And(k % 2 == 0 ? even : odd, hn::Set(i32, 15 << k / 2 * 4));
      const Vec w = hn::MulAdd(hn::ConvertTo(f, q), scale[k / 2], minimum);
      hn::StoreU(w, f, out + (word * 8 + k) * kPanel + lane);
    }
  }
}

void DecodeT(PanelType type, const std::byte* in, uint32_t blocks, float* out) {
  const auto decode = type == PanelType::kQ4_1 ? DecodeQ4_1 : DecodeQ8_0;
  for (; blocks > 0; --blocks, in += BlockBytes(type), out += kBlockInputs * kPanel)
    for (uint32_t lane = 0; lane < kPanel; lane += kLanes) decode(in, lane, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace hidane::model
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hidane::model {

HWY_EXPORT(GemmT);
HWY_EXPORT(DecodeT);

void GemmF32(const GemmArgs<float>& args) {
  HWY_DYNAMIC_DISPATCH(GemmT)(args);
}
void DecodeF32(PanelType type, const std::byte* in, uint32_t blocks, float* out) {
  HWY_DYNAMIC_DISPATCH(DecodeT)(type, in, blocks, out);
}
}  // namespace hidane::model
#endif
