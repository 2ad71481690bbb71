#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "sim/planner.h"

namespace hidane::sim {

/// What the rows mean, in plain sentences: how many replicas `prefix` saves against round robin,
/// or "You don't need this" and why. `most`: replicas tried. Empty unless both are among the rows.
std::string PlanAnswer(std::span<const PlanRow> rows, const PlanDemand& demand, const GpuSetup& gpu,
                       uint32_t most);

/// The share of the fleet's KV memory that one copy of every static prompt takes.
double PrefixShare(const PlanDemand& demand, const GpuSetup& gpu, uint32_t replicas);

}  // namespace hidane::sim
