#include "gateway/routing_params.h"

namespace hidane::gateway {

routing::Params RoutingParamsOf(const Config& c) {
  routing::Params p;
  p.kv_capacity_tokens = static_cast<uint64_t>(c.routing_kv_capacity_tokens());
  p.fill = c.routing_fill();
  p.running_reserve = c.routing_running_reserve();
  if (c.routing_first_sight_choices() > 0)
    p.first_sight_choices = static_cast<uint32_t>(c.routing_first_sight_choices());
  p.keep_warm = c.routing_keep_warm();
  p.silent_peers = c.routing_silent_peers();
  p.headroom = c.routing_headroom();
  p.spare_headroom = c.routing_spare_headroom();
  p.spare_mark = c.routing_spare_mark();
  p.share_halflife_s = c.routing_share_halflife_s();
  p.share_requests_min = c.routing_share_requests_min();
  p.grow_after_s = c.routing_grow_after_s();
  p.idle_release_s = c.routing_idle_release_s();
  p.prefixes_max = static_cast<uint32_t>(c.routing_prefixes_max());
  p.conversations_max = static_cast<uint32_t>(c.routing_conversations_max());
  p.short_k1_s = c.routing_short_k1_ms() / 1e3;
  p.near_tie_s = c.routing_near_tie_ms() / 1e3;
  p.near_tie_share = c.routing_near_tie_share();
  p.compare_max = static_cast<uint32_t>(c.routing_compare_max());
  p.prefill_tokens_per_s = c.routing_prefill_tokens_per_s();
  p.single_flight_tokens = static_cast<uint32_t>(c.routing_single_flight_tokens_min());
  p.single_flight_slack = c.routing_single_flight_slack();
  return p;
}

routing::HealthParams HealthParamsOf(const Config& c) {
  routing::HealthParams p;
  p.probes_down = static_cast<uint32_t>(c.health_probes_down());
  p.resets_out = static_cast<uint32_t>(c.health_resets_out());
  p.errors_out = static_cast<uint32_t>(c.health_errors_out());
  p.eject_s = static_cast<double>(c.health_eject_ms()) / 1e3;
  p.eject_max_percent = c.health_eject_max_percent();
  return p;
}

}  // namespace hidane::gateway
