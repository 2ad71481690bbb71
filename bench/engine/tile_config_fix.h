#pragma once
/// Included ahead of llama.cpp's sources. g++ 12's _tile_loadconfig tells the compiler that it
/// reads eight bytes of its 64: stores to the rest move behind it, and llama.cpp's AMX path dies on
/// an incomplete configuration.
#ifdef __AMX_TILE__
#include <immintrin.h>
#define _tile_loadconfig(config) \
  __asm__ volatile("ldtilecfg %0" ::"m"(*reinterpret_cast<const char(*)[64]>(config)))
#endif
