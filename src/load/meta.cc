#include <fmt/format.h>

#include <fstream>
#include <string>

#include "load/report.h"

#ifndef HIDANE_VERSION
#define HIDANE_VERSION "0"
#endif
#ifndef HIDANE_COMMIT
#define HIDANE_COMMIT "unknown"
#endif

namespace hidane::load {
namespace {

/// The flags that decide which kernels run; /proc/cpuinfo lists some hundred others.
std::string KernelFlags(const std::string& all) {
  std::string out;
  for (const std::string_view flag :
       {"avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16"}) {
    if ((all + " ").find(" " + std::string(flag) + " ") == std::string::npos) continue;
    if (!out.empty()) out += ' ';
    out += flag;
  }
  return out;
}

std::string CpuInfo(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (line.starts_with(key) && colon != std::string::npos) {
      return line.substr(std::min(colon + 2, line.size()));
    }
  }
  return "unknown";
}

}  // namespace

Meta MakeMeta(uint64_t seed, std::string command) {
  return {{"tool", "load"},
          {"version", HIDANE_VERSION},
          {"commit", HIDANE_COMMIT},
          {"compiler", __VERSION__},
          {"cpu", CpuInfo("model name")},
          {"cpu_flags", KernelFlags(" " + CpuInfo("flags"))},
          {"seed", fmt::format("{}", seed)},
          {"command", std::move(command)}};
}

}  // namespace hidane::load
