// Compiled for AMX; called only where BestIsa() says so. No header with inline functions other than
// intrinsics may be included here: the linker might keep this file's copy for every CPU.
#include "model/quant_block.h"
#include "model/tile_config.h"

namespace hidane::model {
namespace {

constexpr uint32_t kBatch = 6;  // blocks decoded at a time; divides K / 32 of many models
constexpr uint32_t kPairs = kBlockInputs / 2;

struct Batch {
  alignas(64) Bf16 weights[kBatch][kPairs * kPanel * 2];
  alignas(64) float sums[kBatch][kTileRows * kPanel];  // of one row tile, before scaling
  BlockScale scales[kBatch];
};

template <PanelType kType>
void Decode(const std::byte* block, uint32_t n, Batch& batch) {
  for (uint32_t b = 0; b < n; ++b, block += BlockBytes(kType)) {
    PrefetchAfter<kType>(block);
    batch.scales[b] = ScaleOf<kType>(block);
    Bf16* const out = batch.weights[b];
    ForPairs<kType>(block, [out](uint32_t i, __m512i pairs) {
      _mm512_store_si512(out + i * kPanel * 2, pairs);
    });
  }
}

/// sums[b] = x's block b times weights[b], each for itself.
void Multiply(const Bf16* x, size_t x_row, uint32_t n, Batch& batch) {
  const size_t stride = x_row * sizeof(Bf16);
  uint32_t b = 0;
  for (; b + 2 <= n; b += 2) {
    _tile_zero(0);
    _tile_loadd(2, x + b * kBlockInputs, stride);
    _tile_loadd(3, batch.weights[b], 64);
    _tile_dpbf16ps(0, 2, 3);
    _tile_zero(1);
    _tile_loadd(4, x + (b + 1) * kBlockInputs, stride);
    _tile_loadd(5, batch.weights[b + 1], 64);
    _tile_dpbf16ps(1, 4, 5);
    _tile_stored(0, batch.sums[b], 64);
    _tile_stored(1, batch.sums[b + 1], 64);
  }
  if (b < n) {
    _tile_zero(0);
    _tile_loadd(2, x + b * kBlockInputs, stride);
    _tile_loadd(3, batch.weights[b], 64);
    _tile_dpbf16ps(0, 2, 3);
    _tile_stored(0, batch.sums[b], 64);
  }
}

/// Adds the scaled sums of `n` blocks to `rows` rows of y.
template <bool kOffset>
inline __attribute__((always_inline)) void Scale(const Batch& batch, uint32_t n,
                                                 const float* x_sums, size_t x_sums_row,
                                                 uint32_t rows, float* y, size_t ldy, bool add) {
  for (uint32_t row = 0; row < rows; ++row, y += ldy, x_sums += x_sums_row) {
    __m512 sum = add ? _mm512_loadu_ps(y) : _mm512_setzero_ps(), offsets = _mm512_setzero_ps();
    for (uint32_t b = 0; b < n; ++b) {
      const __m512 raw = _mm512_load_ps(batch.sums[b] + row * kPanel);
      sum = _mm512_fmadd_ps(raw, batch.scales[b].scale, sum);
      if (kOffset)
        offsets = _mm512_fmadd_ps(_mm512_set1_ps(x_sums[b]), batch.scales[b].offset, offsets);
    }
    _mm512_storeu_ps(y, kOffset ? _mm512_add_ps(sum, offsets) : sum);
  }
}

template <PanelType kType>
void Run(const QuantGemmArgs<Bf16>& g) {
  constexpr bool kOffset = kType == PanelType::kQ4_1;
  Batch batch;
  const std::byte* block = g.w;
  for (uint32_t panel = 0; panel < g.panels; ++panel) {
    for (uint32_t first = 0; first < g.blocks; first += kBatch) {
      const uint32_t n = g.blocks - first < kBatch ? g.blocks - first : kBatch;
      Decode<kType>(block, n, batch);
      block += n * BlockBytes(kType);
      TileBarrier();
      for (uint32_t row = 0; row < g.m; row += kTileRows) {
        const uint32_t rows = g.m - row < kTileRows ? g.m - row : kTileRows;
        Multiply(g.x + row * g.x_row + first * kBlockInputs, g.x_row, n, batch);
        TileBarrier();
        float* const y = g.y + row * g.ldy + panel * kPanel;
        const float* const sums = g.sums + size_t{row} * g.blocks + first;
        const bool add = g.add || first > 0;
        if (n == kBatch) {
          Scale<kOffset>(batch, kBatch, sums, g.blocks, rows, y, g.ldy, add);
        } else {
          Scale<kOffset>(batch, n, sums, g.blocks, rows, y, g.ldy, add);
        }
      }
    }
  }
}

}  // namespace

void QuantGemmAmx(const QuantGemmArgs<Bf16>& g) {
  if (g.m == 1) return QuantGemmAvx512(g);  // a tile of one row is slower than no tile
  // Tiles of x and of sums have no more rows than needed: fewer lines move.
  const auto rows = static_cast<uint8_t>(g.m < kTileRows ? g.m : kTileRows);
  TileConfig config;
  for (const int tile : {0, 1, 2, 4}) config.rows[tile] = rows;
  LoadTileConfig(config);
  if (g.type == PanelType::kQ4_1) {
    Run<PanelType::kQ4_1>(g);
  } else {
    Run<PanelType::kQ8_0>(g);
  }
  _tile_release();
}

}  // namespace hidane::model
