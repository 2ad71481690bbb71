#include "sim/gpu_mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/assert.h"

namespace hidane::sim {
namespace {

constexpr uint32_t kPartMost = 10'000;  // replicas

struct Part {
  uint32_t count = 1;
  GpuSetup gpu;
};

/// `4x8b-fp8-h200`, or a name alone: one.
Result<Part> ParsePart(std::string_view text) {
  Part part;
  uint32_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, count);
  if (error == std::errc() && at != end && *at == 'x') {
    if (count == 0 || count > kPartMost) {
      return Fail(Code::kInvalidArgument,
                  fmt::format("{} replicas in `{}`; 1 to {} may be", count, text, kPartMost),
                  "gpu");
    }
    part.count = count;
    text.remove_prefix(static_cast<size_t>(at - text.data()) + 1);
  }
  HIDANE_TRY(part.gpu, FindGpuSetup(text));
  return part;
}

bool SameModel(const GpuSetup& a, const GpuSetup& b) {
  return a.layers == b.layers && a.width == b.width;
}

}  // namespace

Result<std::vector<GpuSetup>> FindGpuSetups(std::string_view text, uint32_t replicas) {
  HIDANE_ASSERT(replicas > 0);
  std::vector<GpuSetup> gpus;
  for (std::string_view rest = text;;) {
    const size_t comma = rest.find(',');
    HIDANE_TRY(const Part part, ParsePart(rest.substr(0, comma)));
    if (!gpus.empty() && !SameModel(part.gpu, gpus.front())) {
      return Fail(
          Code::kInvalidArgument,
          fmt::format("{} and {} do not serve the same model", gpus.front().name, part.gpu.name),
          "gpu");
    }
    gpus.insert(gpus.end(), part.count, part.gpu);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  const size_t kinds = gpus.size();
  if (replicas % kinds != 0) {
    return Fail(Code::kInvalidArgument,
                fmt::format("{} replicas are no multiple of the {} of `{}`", replicas, kinds, text),
                "gpu");
  }
  gpus.reserve(replicas);
  while (gpus.size() < replicas) gpus.push_back(gpus[gpus.size() - kinds]);
  return gpus;
}

std::vector<EngineOptions> EnginesOn(std::span<const GpuSetup> gpus, const EngineOptions& like) {
  std::vector<EngineOptions> engines(gpus.size(), like);
  for (size_t i = 0; i < gpus.size(); ++i) engines[i].gpu = gpus[i];
  return engines;
}

bool Uniform(std::span<const EngineOptions> engines) {
  return std::ranges::all_of(
      engines, [&](const EngineOptions& e) { return e.gpu.name == engines.front().gpu.name; });
}

}  // namespace hidane::sim
