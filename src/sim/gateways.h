#pragma once
#include <span>
#include <vector>

#include "base/result.h"
#include "sim/cluster.h"
#include "sim/gateway.h"
#include "sim/simulation.h"
#include "sim/working_sets.h"

namespace hidane::sim {

/// The gateways of a setup, each knowing all workers. `cluster` and `world` outlive them.
/// kInvalidArgument (param `policy`, `gateways`): the oracle is one gateway.
Result<std::vector<Gateway>> MakeGateways(const Setup& setup, const Cluster& cluster, World& world);

/// Placement hears which conversations admission expects no more for now.
void TellLeft(WorkingSets& sets, std::span<Gateway> gateways);

/// `index_bytes` of a gateway on average, `index_bytes_per_entry`.
void FillIndexMemory(std::span<const Gateway> gateways, TimePoint now, Row& row);

/// Adds up what they decided.
void AddDecisions(std::span<const Gateway> gateways, Run& run);

}  // namespace hidane::sim
