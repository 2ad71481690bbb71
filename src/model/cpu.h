#pragma once
#include <cstdint>
#include <string_view>

namespace hidane::model {

/// Instruction sets that kernels are written for, each including those before it.
enum class Isa : uint8_t {
  kAvx2,        ///< f32 by Highway: AVX2, or whatever less the CPU has
  kAvx512,      ///< f32 by Highway
  kAvx512Bf16,  ///< + bf16 dot products
  kAmx,         ///< + bf16 tiles
};

/// What this process may use: the CPU's features, the kernel's permission for tile registers, and
/// the ceiling in the environment variable HIDANE_CPU (avx2, avx512, avx512_bf16, amx; any other
/// text is no ceiling). Decided at the first call, which also tells Highway. Thread-safe.
Isa BestIsa();

/// For tests: from now on BestIsa() is `ceiling` or less. The environment no longer counts.
/// REQUIRES: no kernel runs; kernel sets made before keep what they chose.
void SetIsaCeiling(Isa ceiling);

std::string_view IsaName(Isa isa);

}  // namespace hidane::model
