// Compiled for AMX; called only where BestIsa() says so. No header with inline functions other than
// intrinsics may be included here: the linker might keep this file's copy for every CPU.
#include <immintrin.h>

#include "model/tile.h"
#include "model/tile_config.h"

namespace hidane::model {
namespace {

constexpr TileConfig kConfig;
constexpr uint32_t kStep = 32;  // elements along k in one tile row

/// A block of c in tile registers: strides in bytes, `k` tiles long.
struct Block {
  const Bf16* a;
  size_t a_tile;    ///< elements from one row tile of `a` to the next
  size_t a_stride;  ///< bytes
  const Bf16* b;
  size_t b_panel;  ///< elements
  uint32_t steps;
  float* c;
  size_t c_tile;    ///< elements from one row tile of c to the next
  size_t c_stride;  ///< bytes
  bool add;
};

void Block2x2(const Block& s) {
  float* const c10 = s.c + s.c_tile;
  if (s.add) {
    _tile_loadd(0, s.c, s.c_stride);
    _tile_loadd(1, s.c + kPanel, s.c_stride);
    _tile_loadd(2, c10, s.c_stride);
    _tile_loadd(3, c10 + kPanel, s.c_stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const Bf16 *a = s.a, *b = s.b;
  for (uint32_t i = 0; i < s.steps; ++i, a += kStep, b += kStep * kPanel) {
    _tile_loadd(6, b, 64);
    _tile_loadd(4, a, s.a_stride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + s.b_panel, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + s.a_tile, s.a_stride);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, s.c, s.c_stride);
  _tile_stored(1, s.c + kPanel, s.c_stride);
  _tile_stored(2, c10, s.c_stride);
  _tile_stored(3, c10 + kPanel, s.c_stride);
}

void Block1x4(const Block& s) {
  if (s.add) {
    _tile_loadd(0, s.c, s.c_stride);
    _tile_loadd(1, s.c + kPanel, s.c_stride);
    _tile_loadd(2, s.c + 2 * kPanel, s.c_stride);
    _tile_loadd(3, s.c + 3 * kPanel, s.c_stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const Bf16 *a = s.a, *b = s.b;
  for (uint32_t i = 0; i < s.steps; ++i, a += kStep, b += kStep * kPanel) {
    _tile_loadd(4, a, s.a_stride);
    _tile_loadd(5, b, 64);
    _tile_dpbf16ps(0, 4, 5);
    _tile_loadd(6, b + s.b_panel, 64);
    _tile_dpbf16ps(1, 4, 6);
    _tile_loadd(7, b + 2 * s.b_panel, 64);
    _tile_dpbf16ps(2, 4, 7);
    _tile_loadd(5, b + 3 * s.b_panel, 64);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_stored(0, s.c, s.c_stride);
  _tile_stored(1, s.c + kPanel, s.c_stride);
  _tile_stored(2, s.c + 2 * kPanel, s.c_stride);
  _tile_stored(3, s.c + 3 * kPanel, s.c_stride);
}

void Block4x1(const Block& s) {
  float *const c1 = s.c + s.c_tile, *const c2 = c1 + s.c_tile, *const c3 = c2 + s.c_tile;
  if (s.add) {
    _tile_loadd(0, s.c, s.c_stride);
    _tile_loadd(1, c1, s.c_stride);
    _tile_loadd(2, c2, s.c_stride);
    _tile_loadd(3, c3, s.c_stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const Bf16 *a = s.a, *b = s.b;
  for (uint32_t i = 0; i < s.steps; ++i, a += kStep, b += kStep * kPanel) {
    _tile_loadd(4, b, 64);
    _tile_loadd(5, a, s.a_stride);
    _tile_dpbf16ps(0, 5, 4);
    _tile_loadd(6, a + s.a_tile, s.a_stride);
    _tile_dpbf16ps(1, 6, 4);
    _tile_loadd(7, a + 2 * s.a_tile, s.a_stride);
    _tile_dpbf16ps(2, 7, 4);
    _tile_loadd(5, a + 3 * s.a_tile, s.a_stride);
    _tile_dpbf16ps(3, 5, 4);
  }
  _tile_stored(0, s.c, s.c_stride);
  _tile_stored(1, c1, s.c_stride);
  _tile_stored(2, c2, s.c_stride);
  _tile_stored(3, c3, s.c_stride);
}

void Block1x1(const Block& s) {
  if (s.add) {
    _tile_loadd(0, s.c, s.c_stride);
  } else {
    _tile_zero(0);
  }
  const Bf16 *a = s.a, *b = s.b;
  for (uint32_t i = 0; i < s.steps; ++i, a += kStep, b += kStep * kPanel) {
    _tile_loadd(4, a, s.a_stride);
    _tile_loadd(5, b, 64);
    _tile_dpbf16ps(0, 4, 5);
  }
  _tile_stored(0, s.c, s.c_stride);
}

struct Shape {
  uint32_t row_tiles, panels;
  void (*run)(const Block&);
};
constexpr Shape k2x2{2, 2, Block2x2}, k1x4{1, 4, Block1x4}, k4x1{4, 1, Block4x1},
    k1x1{1, 1, Block1x1};

const Shape& Choose(uint32_t row_tiles, uint32_t panels) {
  if (row_tiles >= 2 && panels >= 2) return k2x2;
  if (panels >= 4) return k1x4;
  if (row_tiles >= 4) return k4x1;
  return k1x1;
}

/// Rows i .. i + 16 * row_tiles of c, all columns.
void RowBand(const GemmArgs<Bf16>& g, uint32_t row_tiles, const Bf16* a, float* c, size_t ldc) {
  Block block{
      a, kTileRows * g.a_row, g.a_row * sizeof(Bf16), g.b,  size_t{g.k} * kPanel, g.k / kStep,
      c, kTileRows * ldc,     ldc * sizeof(float),    g.add};
  for (uint32_t panel = 0; panel < g.panels;) {
    const uint32_t left = g.panels - panel;
    const Shape& shape = Choose(row_tiles, left);
    block.b = g.b + panel * block.b_panel;
    for (uint32_t i = 0; i + shape.row_tiles <= row_tiles; i += shape.row_tiles) {
      block.a = a + i * block.a_tile;
      block.c = c + i * block.c_tile + panel * kPanel;
      shape.run(block);
    }
    panel += shape.panels;
  }
}

/// The last rows, fewer than a tile: computed in a buffer, so that no foreign row is written.
void RestRows(const GemmArgs<Bf16>& g, uint32_t first, uint32_t rows) {
  constexpr uint32_t kWide = 4, kStride = kWide * kPanel;
  alignas(64) float buffer[kTileRows * kStride];
  GemmArgs<Bf16> part = g;
  for (uint32_t panel = 0; panel < g.panels; panel += kWide) {
    part.panels = g.panels - panel < kWide ? g.panels - panel : kWide;
    part.b = g.b + size_t{panel} * g.k * kPanel;
    float* const c = g.c + first * g.ldc + panel * kPanel;
    for (uint32_t i = 0; g.add && i < rows; ++i)
      for (uint32_t j = 0; j < part.panels * kPanel; j += kPanel)
        _mm512_store_ps(buffer + i * kStride + j, _mm512_loadu_ps(c + i * g.ldc + j));
    TileBarrier();
    RowBand(part, 1, g.a + first * g.a_row, buffer, kStride);
    TileBarrier();
    for (uint32_t i = 0; i < rows; ++i)
      for (uint32_t j = 0; j < part.panels * kPanel; j += kPanel)
        _mm512_storeu_ps(c + i * g.ldc + j, _mm512_load_ps(buffer + i * kStride + j));
  }
}

}  // namespace

void LoadTiles() {
  LoadTileConfig(kConfig);
}

void ReleaseTiles() {
  _tile_release();
}

void GemmBf16Amx(const GemmArgs<Bf16>& g) {
  TileBarrier();
  const uint32_t rest = g.m % kTileRows;
  // Row tiles in twos or fours where the panels allow it; what is left over, one by one.
  const uint32_t all = g.m / kTileRows, at_once = g.panels == 1 ? 4 : 2;
  for (uint32_t i = 0; i < all;) {
    const uint32_t tiles = all - i >= at_once ? at_once : 1;
    RowBand(g, tiles, g.a + i * kTileRows * g.a_row, g.c + i * kTileRows * g.ldc, g.ldc);
    i += tiles;
  }
  if (rest != 0) RestRows(g, all * kTileRows, rest);
  TileBarrier();
}

}  // namespace hidane::model
