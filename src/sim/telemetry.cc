#include "sim/telemetry.h"

namespace hidane::sim {

void ProbeHealth(const Cluster& cluster, routing::Router& router, TimePoint now) {
  for (uint32_t w = 0; w < cluster.size(); ++w) {
    router.OnProbe(WorkerId(w), cluster.up(w), now);
  }
}

void ScrapeMetrics(const Cluster& cluster, routing::Router& router, TimePoint now) {
  for (uint32_t w = 0; w < cluster.size(); ++w) {
    if (!cluster.up(w)) continue;
    const Engine& engine = cluster.engine(w);
    router.UpdateWorker(WorkerId(w),
                        {.kv_capacity_tokens = engine.kv_capacity_tokens(),
                         .running = engine.running(),
                         .waiting = engine.waiting(),
                         .start_time_s = cluster.started_s(w)},
                        now);
  }
}

Series::Point SampleFleet(const Cluster& cluster, const routing::Router& router, TimePoint now) {
  Series::Point point;
  const auto views = router.Workers(now);  // by id, as the cluster's
  for (uint32_t w = 0; w < cluster.size(); ++w) {
    const Engine& engine = cluster.engine(w);
    const auto share = [&](uint64_t tokens) {
      return static_cast<float>(static_cast<double>(tokens) /
                                static_cast<double>(engine.kv_capacity_tokens()));
    };
    point.kv_held.push_back(share(engine.kv_tokens_held()));
    point.kv_cached.push_back(share(engine.kv_tokens_cached()));
    point.assigned.push_back(share(views[w].assigned_tokens));
  }
  return point;
}

}  // namespace hidane::sim
