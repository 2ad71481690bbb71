#pragma once
#include <immintrin.h>

#include <cstdint>

// For files compiled for AMX only; see quant_block.h about the unnamed namespace.
namespace hidane::model {
namespace {

constexpr uint32_t kTileRows = 16;

/// Palette 1, eight tile registers of 16 rows of 64 bytes unless changed.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

/// Loads all of `config`: g++ 12's intrinsic tells the compiler of its first eight bytes only, so
/// that stores to the others may be dropped.
inline void LoadTileConfig(const TileConfig& config) {
  asm volatile("ldtilecfg %0" ::"m"(config));
}

/// The compiler knows nothing of what the tile instructions read and write.
inline void TileBarrier() {
  asm volatile("" ::: "memory");
}

}  // namespace
}  // namespace hidane::model
