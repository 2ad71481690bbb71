#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/engine.h"
#include "sim/gpu.h"

namespace hidane::sim {

/// The GPU setup of each of `replicas` replicas. `text` is one setup's name (FindGpuSetup), or a
/// mixed fleet, `12x8b-bf16-h100,4x8b-fp8-h200`: the first twelve of one kind, then four of the
/// other, and so on over the fleet, whose size must be a multiple of theirs.
/// kInvalidArgument (param `gpu`) naming the part that isn't understood, does not serve the same
/// model as the first, or a fleet that the parts do not fill. REQUIRES: replicas > 0.
Result<std::vector<GpuSetup>> FindGpuSetups(std::string_view text, uint32_t replicas);

/// Engines on these GPUs, else as `like`.
std::vector<EngineOptions> EnginesOn(std::span<const GpuSetup> gpus, const EngineOptions& like);

/// True if all replicas are of one kind.
bool Uniform(std::span<const EngineOptions> engines);

}  // namespace hidane::sim
