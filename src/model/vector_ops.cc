#include "model/vector_ops.h"

#include <cmath>
#include <cstring>

#include "model/panels.h"

// AVX2 and AVX-512; the baseline is one lane. What lies between is not worth its build time.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/vector_ops.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hidane::model {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::CappedTag<float, kPanel>;
using I = hn::RebindToSigned<F>;
using Vec = hn::Vec<F>;
constexpr F f;
constexpr I i32;
constexpr size_t kLanes = HWY_LANES(float) < kPanel ? HWY_LANES(float) : kPanel;
constexpr uint32_t kVectors = kPanel / kLanes;  // of a panel's row

HWY_INLINE Vec Const(float x) {
  return hn::Set(f, x);
}

// Chains of vectors overlap only if these loops are unrolled early.
#define HIDANE_UNROLL _Pragma("GCC unroll 8")

/// 2^x for x <= 126, relative error < 2^-22; 2^-126 for anything lower. Exact at integers.
/// The polynomial is 1 + r q(r), |r| <= 1/2, the one of degree 5 with the least relative error,
/// 2^-23.4 (by Lawson's algorithm). N of them: one waits for its own steps most of the time.
template <size_t N>
HWY_INLINE void Exp2(Vec (&x)[N]) {
  constexpr float kCoefficients[] = {0.00967151299F, 0.0555073358F, 0.240222424F, 0.693147004F,
                                     1.0F};
  // Beside 1.5 * 2^23 a float has no fraction, and its lowest bits are the integer.
  const Vec shift = Const(12582912.0F);
  Vec shifted[N], p[N];
  HIDANE_UNROLL for (size_t i = 0; i < N; ++i) {
    x[i] = hn::Max(x[i], Const(-126.0F));
    shifted[i] = hn::Add(x[i], shift);
    x[i] = hn::Sub(x[i], hn::Sub(shifted[i], shift));
    p[i] = Const(0.00132647273F);
  }
  HIDANE_UNROLL for (const float c : kCoefficients) {
    HIDANE_UNROLL for (size_t i = 0; i < N; ++i) p[i] = hn::MulAdd(p[i], x[i], Const(c));
  }
  HIDANE_UNROLL for (size_t i = 0; i < N; ++i) {
    const auto exponent = hn::ShiftLeft<23>(hn::BitCast(i32, shifted[i]));
    x[i] = hn::BitCast(f, hn::Add(hn::BitCast(i32, p[i]), exponent));
  }
}

HWY_INLINE Vec Exp2(Vec x) {
  Vec one[1] = {x};
  Exp2(one);
  return one[0];
}

/// x[0..n) by vectors, the rest through a buffer of zeros: fn(vector) -> vector of the output.
template <class Fn>
HWY_INLINE void Rest(const float* x, size_t n, float* out, Fn fn) {
  HWY_ALIGN float buffer[kLanes] = {};
  std::memcpy(buffer, x, n * sizeof(float));
  hn::Store(fn(hn::Load(f, buffer)), f, buffer);
  std::memcpy(out, buffer, n * sizeof(float));
}

void RmsNormRowT(const float* x, const float* gain, size_t n, float eps, float* y) {
  Vec sum0 = hn::Zero(f), sum1 = hn::Zero(f);
  size_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const Vec a = hn::LoadU(f, x + i), b = hn::LoadU(f, x + i + kLanes);
    sum0 = hn::MulAdd(a, a, sum0);
    sum1 = hn::MulAdd(b, b, sum1);
  }
  float sum = hn::GetLane(hn::SumOfLanes(f, hn::Add(sum0, sum1)));
  for (; i < n; ++i) sum += x[i] * x[i];
  const float scale = 1.0F / std::sqrt(sum / static_cast<float>(n) + eps);
  const Vec factor = Const(scale);
  for (i = 0; i + kLanes <= n; i += kLanes)
    hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(f, x + i), factor), hn::LoadU(f, gain + i)), f, y + i);
  for (; i < n; ++i) y[i] = x[i] * scale * gain[i];
}

void RopeRowT(float* x, uint32_t heads, uint32_t head_dim, const float* cos_sin) {
  for (uint32_t head = 0; head < heads; ++head, x += head_dim) {
    uint32_t i = 0;
#if HWY_TARGET != HWY_SCALAR
    for (; i + kLanes <= head_dim; i += kLanes) {
      const Vec ab = hn::LoadU(f, x + i), cs = hn::LoadU(f, cos_sin + i);
      const Vec turned = hn::Mul(hn::Shuffle2301(ab), hn::DupOdd(cs));
      const Vec kept = hn::Mul(ab, hn::DupEven(cs));
      hn::StoreU(hn::OddEven(hn::Add(kept, turned), hn::Sub(kept, turned)), f, x + i);
    }
#endif
    for (; i < head_dim; i += 2) {
      const float a = x[i], b = x[i + 1], c = cos_sin[i], s = cos_sin[i + 1];
      x[i] = a * c - b * s;
      x[i + 1] = b * c + a * s;
    }
  }
}

void SiluMulRowT(const float* gate, const float* up, size_t n, float* out) {
  const auto silu = [](Vec z) HWY_ATTR {
    const Vec e = Exp2(hn::Min(hn::Mul(z, Const(-1.4426950408889634F)), Const(126.0F)));
    return hn::Div(z, hn::Add(Const(1.0F), e));
  };
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    hn::StoreU(hn::Mul(silu(hn::LoadU(f, gate + i)), hn::LoadU(f, up + i)), f, out + i);
  if (i == n) return;
  HWY_ALIGN float g[kLanes] = {}, u[kLanes] = {};
  std::memcpy(g, gate + i, (n - i) * sizeof(float));
  std::memcpy(u, up + i, (n - i) * sizeof(float));
  hn::Store(hn::Mul(silu(hn::Load(f, g)), hn::Load(f, u)), f, g);
  std::memcpy(out + i, g, (n - i) * sizeof(float));
}

/// The upper halves after rounding to nearest even, still in 32-bit lanes.
HWY_INLINE hn::Vec<I> RoundedBits(Vec x) {
  const auto bits = hn::BitCast(i32, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(i32, 1));
  return hn::Add(bits, hn::Add(odd, hn::Set(i32, 0x7FFF)));
}

void RoundRowT(const float* x, size_t n, Bf16* out) {
  const hn::Rebind<uint16_t, F> u16;
  const hn::RebindToUnsigned<F> u32;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto bits = hn::BitCast(u32, RoundedBits(hn::LoadU(f, x + i)));
    hn::StoreU(hn::DemoteTo(u16, hn::BitCast(i32, hn::ShiftRight<16>(bits))), u16, out + i);
  }
  for (; i < n; ++i) {
    uint32_t bits;
    std::memcpy(&bits, x + i, sizeof bits);
    out[i] = static_cast<Bf16>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  }
}

void ScaleRowT(const float* x, size_t n, float factor, float* out) {
  const auto scale = [factor](Vec v) HWY_ATTR { return hn::Mul(v, Const(factor)); };
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(scale(hn::LoadU(f, x + i)), f, out + i);
  if (i < n) Rest(x + i, n - i, out + i, scale);
}

HWY_INLINE void StoreProbs(Vec even, Vec odd, uint32_t slot, uint32_t lane, float* probs) {
  hn::Store(even, f, probs + slot * kPanel + lane);
  hn::Store(odd, f, probs + (slot + 1) * kPanel + lane);
}

HWY_INLINE void StoreProbs(Vec even, Vec odd, uint32_t slot, uint32_t lane, Bf16* probs) {
  // Not to even: probabilities are no ties in practice, and half an ulp is the bound either way.
  const hn::RebindToUnsigned<F> u32;
  const auto half = hn::Set(u32, 0x8000);
  const auto low = hn::ShiftRight<16>(hn::Add(hn::BitCast(u32, even), half));
  const auto high = hn::And(hn::Add(hn::BitCast(u32, odd), half), hn::Set(u32, 0xFFFF0000U));
  hn::StoreU(hn::Or(low, high), u32, reinterpret_cast<uint32_t*>(probs) + slot / 2 * kPanel + lane);
}

template <bool kMasked, class T>
HWY_INLINE void SoftmaxColumns(const float* scores, const int32_t* limits, uint64_t dead,
                               SoftmaxState& state, float* out, uint32_t rows, T* probs,
                               uint32_t lane) {
  const auto limit = hn::Load(i32, limits + lane);
  const auto visible = [limit, dead](uint32_t slot) HWY_ATTR {
    const bool is_dead = dead >> slot & 1;
    const int32_t place = is_dead ? INT32_MAX : static_cast<int32_t>(slot);
    return hn::RebindMask(f, hn::Lt(hn::Set(i32, place), limit));
  };
  const Vec old_max = hn::Load(f, state.max + lane);
  Vec max = old_max, max1 = old_max;
  for (uint32_t slot = 0; slot < kTileSlots; slot += 2) {
    Vec a = hn::Load(f, scores + slot * kPanel + lane);
    Vec b = hn::Load(f, scores + (slot + 1) * kPanel + lane);
    if (kMasked) {
      a = hn::IfThenElse(visible(slot), a, old_max);
      b = hn::IfThenElse(visible(slot + 1), b, old_max);
    }
    max = hn::Max(max, a);
    max1 = hn::Max(max1, b);
  }
  max = hn::Max(max, max1);
  constexpr uint32_t kAtOnce = 4;
  Vec sum = hn::Zero(f), sum1 = hn::Zero(f);
  for (uint32_t slot = 0; slot < kTileSlots; slot += kAtOnce) {
    Vec p[kAtOnce];
    HIDANE_UNROLL for (uint32_t i = 0; i < kAtOnce; ++i) {
      p[i] = hn::Sub(hn::Load(f, scores + (slot + i) * kPanel + lane), max);
    }
    Exp2(p);
    HIDANE_UNROLL for (uint32_t i = 0; kMasked && i < kAtOnce; ++i) {
      p[i] = hn::IfThenElseZero(visible(slot + i), p[i]);
    }
    HIDANE_UNROLL for (uint32_t i = 0; i < kAtOnce; i += 2) {
      sum = hn::Add(sum, p[i]);
      sum1 = hn::Add(sum1, p[i + 1]);
      StoreProbs(p[i], p[i + 1], slot + i, lane, probs);
    }
  }
  hn::Store(max, f, state.max + lane);
  const Vec factor = Exp2(hn::Sub(old_max, max));
  const Vec old_sum = hn::Load(f, state.sum + lane);
  hn::Store(hn::MulAdd(old_sum, factor, hn::Add(sum, sum1)), f, state.sum + lane);
  if (hn::AllTrue(f, hn::Eq(max, old_max))) return;  // the factor is 1
  for (uint32_t row = 0; row < rows; ++row) {
    float* at = out + row * kPanel + lane;
    hn::Store(hn::Mul(hn::Load(f, at), factor), f, at);
  }
}

template <class T>
HWY_INLINE void SoftmaxTileT(const float* scores, const int32_t* limits, uint64_t dead,
                             SoftmaxState& state, float* out, uint32_t rows, T* probs) {
  for (uint32_t lane = 0; lane < kPanel; lane += kLanes) {
    const auto limit = hn::Load(i32, limits + lane);
    if (hn::AllFalse(i32, hn::Gt(limit, hn::Zero(i32)))) {
      for (uint32_t slot = 0; slot < kTileSlots; slot += 2)
        StoreProbs(hn::Zero(f), hn::Zero(f), slot, lane, probs);
    } else if (dead != 0 || !hn::AllFalse(i32, hn::Lt(limit, hn::Set(i32, kTileSlots)))) {
      SoftmaxColumns<true>(scores, limits, dead, state, out, rows, probs, lane);
    } else {
      SoftmaxColumns<false>(scores, limits, dead, state, out, rows, probs, lane);
    }
  }
}

void SoftmaxF32T(const float* scores, const int32_t* limits, uint64_t dead, SoftmaxState& state,
                 float* out, uint32_t rows, float* probs) {
  SoftmaxTileT(scores, limits, dead, state, out, rows, probs);
}

void SoftmaxBf16T(const float* scores, const int32_t* limits, uint64_t dead, SoftmaxState& state,
                  float* out, uint32_t rows, Bf16* probs) {
  SoftmaxTileT(scores, limits, dead, state, out, rows, probs);
}

void ProbabilityT(float* scores, const float* lse) {
  for (uint32_t lane = 0; lane < kPanel; lane += kLanes) {
    const Vec log_sum = hn::LoadU(f, lse + lane);
    for (uint32_t slot = 0; slot < kTileSlots; ++slot) {
      float* at = scores + slot * kPanel + lane;
      hn::Store(Exp2(hn::Sub(hn::Load(f, at), log_sum)), f, at);
    }
  }
}

void SoftmaxMergeT(SoftmaxState& state, float* out, uint32_t rows, const SoftmaxState& later,
                   const float* later_out) {
  for (uint32_t lane = 0; lane < kPanel; lane += kLanes) {
    const Vec old_max = hn::Load(f, state.max + lane), new_max = hn::Load(f, later.max + lane);
    const Vec max = hn::Max(old_max, new_max);
    const Vec a = Exp2(hn::Sub(old_max, max)), b = Exp2(hn::Sub(new_max, max));
    const Vec sum = hn::Mul(hn::Load(f, state.sum + lane), a);
    hn::Store(hn::MulAdd(hn::Load(f, later.sum + lane), b, sum), f, state.sum + lane);
    hn::Store(max, f, state.max + lane);
    for (uint32_t row = 0; row < rows; ++row) {
      float* at = out + row * kPanel + lane;
      const Vec scaled = hn::Mul(hn::Load(f, at), a);
      hn::Store(hn::MulAdd(hn::Load(f, later_out + row * kPanel + lane), b, scaled), f, at);
    }
  }
}

void SoftmaxFinishT(const SoftmaxState& state, float* out, uint32_t rows) {
  for (uint32_t lane = 0; lane < kPanel; lane += kLanes) {
    const Vec inverse = hn::Div(Const(1.0F), hn::Load(f, state.sum + lane));
    for (uint32_t row = 0; row < rows; ++row) {
      float* at = out + row * kPanel + lane;
      hn::Store(hn::Mul(hn::Load(f, at), inverse), f, at);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hidane::model
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hidane::model {

HWY_EXPORT(RmsNormRowT);
HWY_EXPORT(RopeRowT);
HWY_EXPORT(SiluMulRowT);
HWY_EXPORT(RoundRowT);
HWY_EXPORT(ScaleRowT);
HWY_EXPORT(SoftmaxF32T);
HWY_EXPORT(SoftmaxBf16T);
HWY_EXPORT(ProbabilityT);
HWY_EXPORT(SoftmaxMergeT);
HWY_EXPORT(SoftmaxFinishT);

void RmsNormRow(const float* x, const float* gain, size_t n, float eps, float* y) {
  HWY_DYNAMIC_DISPATCH(RmsNormRowT)(x, gain, n, eps, y);
}
void RopeRow(float* x, uint32_t heads, uint32_t head_dim, const float* cos_sin) {
  HWY_DYNAMIC_DISPATCH(RopeRowT)(x, heads, head_dim, cos_sin);
}
void SiluMulRow(const float* gate, const float* up, size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(SiluMulRowT)(gate, up, n, out);
}
void RoundRow(const float* x, size_t n, Bf16* out) {
  HWY_DYNAMIC_DISPATCH(RoundRowT)(x, n, out);
}
void ScaleRow(const float* x, size_t n, float factor, float* out) {
  HWY_DYNAMIC_DISPATCH(ScaleRowT)(x, n, factor, out);
}
void SoftmaxTile(const float* scores, const int32_t* limits, uint64_t dead, SoftmaxState& state,
                 float* out, uint32_t rows, float* probs) {
  HWY_DYNAMIC_DISPATCH(SoftmaxF32T)(scores, limits, dead, state, out, rows, probs);
}
void SoftmaxTile(const float* scores, const int32_t* limits, uint64_t dead, SoftmaxState& state,
                 float* out, uint32_t rows, Bf16* probs) {
  HWY_DYNAMIC_DISPATCH(SoftmaxBf16T)(scores, limits, dead, state, out, rows, probs);
}
void ProbabilityTile(float* scores, const float* lse) {
  HWY_DYNAMIC_DISPATCH(ProbabilityT)(scores, lse);
}
void SoftmaxMerge(SoftmaxState& state, float* out, uint32_t rows, const SoftmaxState& later,
                  const float* later_out) {
  HWY_DYNAMIC_DISPATCH(SoftmaxMergeT)(state, out, rows, later, later_out);
}
void SoftmaxFinish(const SoftmaxState& state, float* out, uint32_t rows) {
  HWY_DYNAMIC_DISPATCH(SoftmaxFinishT)(state, out, rows);
}

}  // namespace hidane::model
#endif
