#include <fmt/format.h>

#include <fstream>
#include <string>

#include "load/report.h"

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

Meta MakeMeta(const Build& build, std::string tool, uint64_t seed, std::string command) {
  return {{"tool", std::move(tool)},         {"version", build.version},
          {"commit", build.commit},          {"compiler", __VERSION__},
          {"cpu", CpuInfo("model name")},    {"cpu_flags", KernelFlags(" " + CpuInfo("flags"))},
          {"seed", fmt::format("{}", seed)}, {"command", std::move(command)}};
}

}  // namespace hidane::load
