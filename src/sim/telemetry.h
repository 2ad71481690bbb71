#pragma once
#include "base/clock.h"
#include "routing/router.h"
#include "sim/cluster.h"
#include "sim/series.h"

namespace hidane::sim {

/// One round of the gateway's `/health` probes.
void ProbeHealth(const Cluster& cluster, routing::Router& router, TimePoint now);

/// One round of its `/metrics` scrapes; a worker that is down says nothing.
void ScrapeMetrics(const Cluster& cluster, routing::Router& router, TimePoint now);

/// The fleet's part of a series point: memory as it is, placement as `router` has it.
Series::Point SampleFleet(const Cluster& cluster, const routing::Router& router, TimePoint now);

}  // namespace hidane::sim
