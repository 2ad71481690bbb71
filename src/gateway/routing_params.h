#pragma once
#include "gateway/config.h"
#include "routing/health.h"
#include "routing/params.h"

namespace hidane::gateway {

/// What the configuration says of routing, in the units of its room. A default configuration gives
/// default parameters: the simulator, which reads no configuration, judges what the gateway runs.
routing::Params RoutingParamsOf(const Config& config);
routing::HealthParams HealthParamsOf(const Config& config);

}  // namespace hidane::gateway
