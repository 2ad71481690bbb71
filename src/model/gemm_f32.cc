#include <algorithm>

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
using I = hn::RebindToSigned<F>;
using Vec = hn::Vec<F>;
constexpr F f;
constexpr I i32;
constexpr size_t kLanes = HWY_LANES(float) < kPanel ? HWY_LANES(float) : kPanel;
constexpr uint32_t kVectors = kPanel / kLanes;     // of a panel's row
constexpr uint32_t kSums = kLanes == 1 ? 96 : 12;  // registers of sums, of 32 or 16

// Blocks of sums live in registers only if these loops are unrolled early.
#define HIDANE_UNROLL _Pragma("GCC unroll 96")
#ifdef HIDANE_SANITIZED  // unrolled, a check at every load: 15 minutes and more to compile
#define HIDANE_UNROLL_K
#else
#define HIDANE_UNROLL_K _Pragma("GCC unroll 8")
#endif

/// R rows of the left operand from `first` on, a column at a time: where they lie at equal
/// distances,
struct Strided {
  template <uint32_t R>
  struct Column {
    const float* at;
    size_t row, next;

    Column(const GemmArgs<float>& g, uint32_t first)
        : at(g.a + first * g.a_row), row(g.a_row), next(g.a_col) {}
    float operator[](uint32_t i) const { return at[i * row]; }
    void Next() { at += next; }
  };
};
/// where each row has its own place,
struct ByRows {
  template <uint32_t R>
  struct Column {
    const float* at[R];
    size_t l = 0;

    Column(const GemmArgs<float>& g, uint32_t first) { std::copy_n(g.rows + first, R, at); }
    float operator[](uint32_t i) const { return at[i][l]; }
    void Next() { ++l; }
  };
};
/// and where each column has.
struct ByColumns {
  template <uint32_t R>
  struct Column {
    const float* const* at;
    uint32_t first;

    Column(const GemmArgs<float>& g, uint32_t from) : at(g.rows), first(from) {}
    float operator[](uint32_t i) const { return (*at)[first + i]; }
    void Next() { ++at; }
  };
};

/// R rows of P panels, the first V vectors of each.
template <class Left, uint32_t R, uint32_t P, uint32_t V>
HWY_INLINE void GemmBlock(const GemmArgs<float>& g, uint32_t row, uint32_t panel) {
  constexpr uint32_t kWide = P * V;
  typename Left::template Column<R> left(g, row);
  const float* b = g.b + size_t{panel} * g.k * kPanel;
  float* const c = g.c + row * g.ldc + panel * kPanel;
  const auto at = [c, &g](uint32_t i) HWY_ATTR {
    return c + i / kWide * g.ldc + i % kWide / V * kPanel + i % V * kLanes;
  };
  Vec sum[R * kWide];
  HIDANE_UNROLL for (uint32_t i = 0; i < R * kWide; ++i) {
    sum[i] = g.add ? hn::LoadU(f, at(i)) : hn::Zero(f);
  }
  // Attention passes here 64 times; unrolled it is faster (ADR 0003).
  HIDANE_UNROLL_K for (uint32_t l = 0; l < g.k; ++l, left.Next(), b += kPanel) {
    Vec right[kWide];
    HIDANE_UNROLL for (uint32_t v = 0; v < kWide; ++v) {
      right[v] = hn::LoadU(f, b + size_t{v / V} * g.k * kPanel + v % V * kLanes);
    }
    HIDANE_UNROLL for (uint32_t i = 0; i < R * kWide; ++i) {
      sum[i] = hn::MulAdd(hn::Set(f, left[i / kWide]), right[i % kWide], sum[i]);
    }
  }
  HIDANE_UNROLL for (uint32_t i = 0; i < R * kWide; ++i) hn::StoreU(sum[i], f, at(i));
  if (g.ahead != nullptr) g.ahead->PrefetchSome();
}

/// All panels of the rows from `row` on, R at a time; the rows left are fewer. A sum waits for the
/// one before: the fewer rows, the more panels side by side keep the multipliers busy.
template <class Left, uint32_t R, uint32_t V>
HWY_INLINE void GemmBand(const GemmArgs<float>& g, uint32_t& row) {
  constexpr uint32_t kMost = kSums / V / R, kAtOnce = kMost < 1 ? 1 : kMost < 6 ? kMost : 6;
  const uint32_t end = g.m - (g.m - row) % R;
  uint32_t panel = 0;
  for (; panel + kAtOnce <= g.panels; panel += kAtOnce)
    for (uint32_t r = row; r < end; r += R) GemmBlock<Left, R, kAtOnce, V>(g, r, panel);
  for (; panel < g.panels; ++panel)
    for (uint32_t r = row; r < end; r += R) GemmBlock<Left, R, 1, V>(g, r, panel);
  row = end;
}

template <class Left, uint32_t V>
void Gemm(const GemmArgs<float>& g) {
  uint32_t row = 0;
  GemmBand<Left, kSums / V, V>(g, row);
  GemmBand<Left, 4, V>(g, row);
  GemmBand<Left, 2, V>(g, row);
  GemmBand<Left, 1, V>(g, row);
}

template <class Left>
void GemmOf(const GemmArgs<float>& g) {
  if (g.columns <= kLanes) {
    Gemm<Left, 1>(g);
  } else {
    Gemm<Left, kVectors>(g);
  }
}

void GemmT(const GemmArgs<float>& g) {
  if (g.rows == nullptr) return GemmOf<Strided>(g);
  return g.by_column ? GemmOf<ByColumns>(g) : GemmOf<ByRows>(g);
}

/// kLanes columns of a Q4_1 block. A nibble is not shifted down: its scale is that much smaller.
/// Integer times scale is exact (4 and 11 bits), so the fused sum rounds once, as the scalar
/// decoder's does.
struct Q4_1Columns {
  struct Eight {
    hn::VFromD<I> even, odd;
  };
  const int32_t* words;
  Vec scale[4], minimum;

  HWY_INLINE void Read(const std::byte* block, uint32_t lane) {
    const hn::Rebind<hwy::float16_t, F> f16;
    const auto* const halves = reinterpret_cast<const hwy::float16_t*>(block) + lane;
    words = reinterpret_cast<const int32_t*>(block + 4 * kPanel) + lane;
    scale[0] = hn::PromoteTo(f, hn::LoadU(f16, halves));
    HIDANE_UNROLL for (uint32_t i = 1; i < 4; ++i) {
      scale[i] = hn::Mul(scale[i - 1], hn::Set(f, 0.0625F));
    }
    minimum = hn::PromoteTo(f, hn::LoadU(f16, halves + kPanel));
  }
  /// Inputs 8 i .. 8 i + 8.
  HWY_INLINE Eight Load(uint32_t i) const {
    const auto even = hn::LoadU(i32, words + i * kPanel);
    return {even, hn::ShiftRight<16>(even)};
  }
  HWY_INLINE Vec Weight(const Eight& eight, uint32_t k) const {
    const auto q = hn::And(k % 2 == 0 ? eight.even : eight.odd, hn::Set(i32, 15 << k / 2 * 4));
    return hn::MulAdd(hn::ConvertTo(f, q), scale[k / 2], minimum);
  }
};

/// kLanes columns of a Q8_0 block.
struct Q8_0Columns {
  using Eight = const int8_t*;
  const int8_t* q;
  Vec scale;

  HWY_INLINE void Read(const std::byte* block, uint32_t lane) {
    q = reinterpret_cast<const int8_t*>(block + 4 * kPanel) + lane;
    scale = hn::LoadU(f, reinterpret_cast<const float*>(block) + lane);
  }
  HWY_INLINE Eight Load(uint32_t i) const { return q + 8 * i * kPanel; }
  HWY_INLINE Vec Weight(Eight eight, uint32_t k) const {
    const hn::Rebind<int8_t, F> i8;
    const auto value = hn::PromoteTo(i32, hn::LoadU(i8, eight + k * kPanel));
    return hn::Mul(hn::ConvertTo(f, value), scale);
  }
};

template <class Columns>
void Decode(const std::byte* in, uint32_t lane, float* out) {
  Columns columns;
  columns.Read(in, lane);
  for (uint32_t i = 0; i < kBlockInputs / 8; ++i) {
    const auto eight = columns.Load(i);
    HIDANE_UNROLL for (uint32_t k = 0; k < 8; ++k) {
      hn::StoreU(columns.Weight(eight, k), f, out + (8 * i + k) * kPanel + lane);
    }
  }
}

void DecodeT(PanelType type, const std::byte* in, uint32_t blocks, float* out) {
  const auto decode = type == PanelType::kQ4_1 ? Decode<Q4_1Columns> : Decode<Q8_0Columns>;
  for (; blocks > 0; --blocks, in += BlockBytes(type), out += kBlockInputs * kPanel)
    for (uint32_t lane = 0; lane < kPanel; lane += kLanes) decode(in, lane, out);
}

/// R rows of P panels, weights decoded in registers.
template <class Columns, uint32_t R, uint32_t P>
void QuantBlock(const QuantGemmArgs<float>& g, uint32_t row, uint32_t panel) {
  constexpr uint32_t kWide = P * kVectors;
  const size_t bytes = BlockBytes(g.type);
  const float* x = g.x + row * g.x_row;
  float* const y = g.y + row * g.ldy + panel * kPanel;
  Vec sum[R * kWide];
  HIDANE_UNROLL for (uint32_t i = 0; i < R * kWide; ++i) {
    sum[i] = g.add ? hn::LoadU(f, y + i / kWide * g.ldy + i % kWide * kLanes) : hn::Zero(f);
  }
  for (uint32_t block = 0; block < g.blocks; ++block) {
    Columns columns[kWide];
    HIDANE_UNROLL for (uint32_t v = 0; v < kWide; ++v) {
      const size_t at = size_t{panel + v / kVectors} * g.blocks + block;
      columns[v].Read(g.w + at * bytes, v % kVectors * kLanes);
    }
    for (uint32_t i = 0; i < kBlockInputs / 8; ++i, x += 8) {
      typename Columns::Eight eight[kWide];
      HIDANE_UNROLL for (uint32_t v = 0; v < kWide; ++v) eight[v] = columns[v].Load(i);
      HIDANE_UNROLL for (uint32_t j = 0; j < 8 * kWide; ++j) {
        const uint32_t k = j / kWide, v = j % kWide;
        const Vec weight = columns[v].Weight(eight[v], k);
        HIDANE_UNROLL for (uint32_t r = 0; r < R; ++r) {
          Vec& to = sum[r * kWide + v];
          to = hn::MulAdd(hn::Set(f, x[r * g.x_row + k]), weight, to);
        }
      }
    }
  }
  HIDANE_UNROLL for (uint32_t i = 0; i < R * kWide; ++i) {
    hn::StoreU(sum[i], f, y + i / kWide * g.ldy + i % kWide * kLanes);
  }
}

/// All panels of the rows from `row` on, R at a time.
template <class Columns, uint32_t R>
HWY_INLINE void QuantBand(const QuantGemmArgs<float>& g, uint32_t& row) {
  constexpr uint32_t kAtOnce = kVectors == 1 ? 4 : 1;  // one sum a row would wait for itself
  for (; row + R <= g.m; row += R) {
    uint32_t panel = 0;
    for (; panel + kAtOnce <= g.panels; panel += kAtOnce)
      QuantBlock<Columns, R, kAtOnce>(g, row, panel);
    for (; panel < g.panels; ++panel) QuantBlock<Columns, R, 1>(g, row, panel);
  }
}

template <class Columns>
void QuantGemm(const QuantGemmArgs<float>& g) {
  uint32_t row = 0;
  QuantBand<Columns, 2>(g, row);
  QuantBand<Columns, 1>(g, row);
}

void QuantGemmT(const QuantGemmArgs<float>& g) {
  if (g.type == PanelType::kQ4_1) {
    QuantGemm<Q4_1Columns>(g);
  } else {
    QuantGemm<Q8_0Columns>(g);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hidane::model
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hidane::model {

HWY_EXPORT(GemmT);
HWY_EXPORT(DecodeT);
HWY_EXPORT(QuantGemmT);

void GemmF32(const GemmArgs<float>& args) {
  HWY_DYNAMIC_DISPATCH(GemmT)(args);
}
void DecodeF32(PanelType type, const std::byte* in, uint32_t blocks, float* out) {
  HWY_DYNAMIC_DISPATCH(DecodeT)(type, in, blocks, out);
}
void QuantGemmF32(const QuantGemmArgs<float>& args) {
  HWY_DYNAMIC_DISPATCH(QuantGemmT)(args);
}
}  // namespace hidane::model
#endif
