#pragma once
#include <cstddef>
#include <cstdint>

namespace hidane::model {

/// bf16 bits: the upper half of an f32.
using Bf16 = uint16_t;

/// Columns of a panel: one AVX-512 register of f32, one tile register's width.
inline constexpr uint32_t kPanel = 16;
/// Rows that the left operand of a GEMM must have readable, in multiples (tile registers are
/// whole).
inline constexpr uint32_t kRowPad = 16;

inline constexpr size_t kLine = 64;  ///< bytes of a cache line

/// Cache lines of some rows that the next products will read. A product asks for a few after every
/// block of its sums: asked for at once, they would hold up what the product itself waits for.
struct Ahead {
  const float* const* rows;
  uint32_t count;      ///< rows not asked for
  uint32_t row_lines;  ///< of kLine bytes
  uint32_t at_once;    ///< lines
  uint32_t line = 0;   ///< of the first row

  void PrefetchSome() {
    for (uint32_t i = 0; i < at_once && count > 0; ++i) {
      __builtin_prefetch(*rows + line * (kLine / sizeof(float)), /*rw=*/0, /*locality=*/2);
      if (++line < row_lines) continue;
      line = 0;
      ++rows;
      --count;
    }
  }
};

/// The one inner kernel that the engine is made of; projections and attention are loops around it.
///
///     c[i][j] (+)= sum over l < k of a[i][l] * b[l][j]      i < m, j < 16 * panels
///
/// The right operand lies in panels of 16 columns, each [k][16] (f32) or [k/2][16][2] (bf16: pairs
/// along k, as dot-product instructions take them), one panel after the other. f32: element (i, l)
/// of `a` is a[i * a_row + l * a_col], or where `rows` is given, rows[i][l] (`by_column`:
/// rows[l][i]), rows that lie anywhere; every element of c is one chain of fused multiply-adds in
/// the order of l, so its bits do not depend on m or panels. bf16: a_col is 1, products are exact,
/// the order of the sums is the instruction's.
/// c is f32, rows ldc apart; `add` starts from c, else from zero. `columns`: of every panel, as
/// many are wanted; the others' sums may be left as they are. REQUIRES: bf16: k % 32 == 0 and `a`
/// readable up to a multiple of 16 rows.
template <class T>
struct GemmArgs {
  const T* a;
  size_t a_row, a_col;
  const T* b;
  uint32_t m, panels, k;
  float* c;
  size_t ldc;
  bool add;
  uint32_t columns = kPanel;
  const T* const* rows = nullptr;
  bool by_column = false;
  Ahead* ahead = nullptr;  ///< f32; asked for meanwhile
};
template <class T>
using GemmFn = void (*)(const GemmArgs<T>&);

void GemmF32(const GemmArgs<float>& args);        ///< the best Highway target
void GemmBf16Avx512(const GemmArgs<Bf16>& args);  ///< REQUIRES: Isa::kAvx512Bf16
void GemmBf16Amx(const GemmArgs<Bf16>& args);     ///< REQUIRES: Isa::kAmx; inside a TileScope

void LoadTiles();     ///< this thread's tile registers become those that GemmBf16Amx uses
void ReleaseTiles();  ///< and are given back: a thread in their possession is dearer to switch

/// The span of a task that calls `gemm`: loading the tile configuration for every call would cost
/// as much as a small product.
class TileScope {
 public:
  explicit TileScope(GemmFn<Bf16> gemm) : amx_(gemm == GemmBf16Amx) {
    if (amx_) LoadTiles();
  }
  explicit TileScope(GemmFn<float>) {}
  ~TileScope() {
    if (amx_) ReleaseTiles();
  }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;

 private:
  bool amx_ = false;
};

/// dst[j][i] = src[i][j] for i < 16, j < cols: four-byte elements, strides in elements. A panel is
/// 16 rows transposed, and back again. Avx512: cols % 16 == 0.
void Transpose16(const uint32_t* src, size_t src_stride, uint32_t cols, uint32_t* dst,
                 size_t dst_stride);
void Transpose16Avx512(const uint32_t* src, size_t src_stride, uint32_t cols, uint32_t* dst,
                       size_t dst_stride);

/// dst[j][i] = src[i][j] for i < rows, j < cols, of bf16; src rows are `cols` apart, dst rows
/// `rows`. REQUIRES: Isa::kAvx512Bf16; rows % 32 == 0; cols % 32 == 0.
void TransposeBf16(const Bf16* src, uint32_t rows, uint32_t cols, Bf16* dst);

}  // namespace hidane::model
