#include "model/cpu.h"

#include <hwy/targets.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>
#include <cstdlib>

namespace hidane::model {
namespace {

constexpr Isa kAll[] = {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx};

// Tile registers enlarge every thread's saved state, so Linux gives them only on request
// (arch_prctl(2), ARCH_REQ_XCOMP_PERM; 18 = XTILEDATA).
bool RequestTiles() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

// CPUID leaf 7: g++ 12's __builtin_cpu_supports does not know every name used here.
struct Features {
  bool avx512 = false, bf16 = false, amx = false;
};

Features CpuFeatures() {
  Features f;
#if defined(__x86_64__)
  f.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  uint32_t a = 7, b = 0, c = 0, d = 0;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  f.amx = (d >> 22 & 1) != 0 && (d >> 24 & 1) != 0;  // AMX-BF16, AMX-TILE
  const uint32_t subleaves = a;
  if (subleaves >= 1) {
    a = 7, c = 1;
    asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    f.bf16 = f.avx512 && (a >> 5 & 1) != 0;
  }
#endif
  return f;
}

Isa CeilingOfEnvironment() {
  const char* text = std::getenv("HIDANE_CPU");
  for (const Isa isa : kAll)
    if (text != nullptr && IsaName(isa) == text) return isa;
  return Isa::kAmx;
}

Isa Detect(Isa ceiling) {
  const Features cpu = CpuFeatures();
  hwy::DisableTargets(ceiling == Isa::kAvx2 ? HWY_AVX3 | HWY_AVX3_DL : 0);
  if (ceiling == Isa::kAvx2 || !cpu.avx512) return Isa::kAvx2;
  if (ceiling == Isa::kAvx512 || !cpu.bf16) return Isa::kAvx512;
  if (ceiling == Isa::kAvx512Bf16 || !cpu.amx || !RequestTiles()) return Isa::kAvx512Bf16;
  return Isa::kAmx;
}

std::atomic<Isa>& Chosen() {
  static std::atomic<Isa> isa = Detect(CeilingOfEnvironment());
  return isa;
}

}  // namespace

Isa BestIsa() {
  return Chosen();
}

void SetIsaCeiling(Isa ceiling) {
  Chosen() = Detect(ceiling);
}

std::string_view IsaName(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Bf16:
      return "avx512_bf16";
    case Isa::kAmx:
      return "amx";
  }
  return "avx2";
}

}  // namespace hidane::model
