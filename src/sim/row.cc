#include "sim/row.h"

namespace hidane::sim {

void AppendJson(const Row& r, JsonWriter& out, bool wall) {
  out.BeginObject();
  out.Field("scenario", r.scenario).Field("fleet", r.fleet).Field("phase", r.phase);
  out.Field("working_set", r.working_set).Field("policy", r.policy);
  out.Field("gateways", r.gateways).Field("deltas", r.deltas).Field("seeds", r.seeds);
  out.Field("requests", r.requests).Field("errors", r.errors);
  out.Field("hit_ratio", r.hit_ratio).Field("hit_ratio_believed", r.hit_ratio_believed);
  out.Field("hit_ratio_bound", r.hit_ratio_bound);
  out.Field("ttft_p50_s", r.ttft_p50_s).Field("ttft_p99_s", r.ttft_p99_s);
  out.Field("admission_wait_mean_s", r.admission_wait_mean_s);
  out.Field("admission_wait_p99_s", r.admission_wait_p99_s);
  out.Field("ttft_with_wait_p99_s", r.ttft_with_wait_p99_s).Field("tpot_p50_s", r.tpot_p50_s);
  out.Field("recompute_share", r.recompute_share);
  out.Field("static_prefill_share", r.static_prefill_share);
  out.Field("goodput_rps", r.goodput_rps).Field("requests_per_s", r.requests_per_s);
  out.Field("load_imbalance", r.load_imbalance).Field("mean_homes", r.mean_homes);
  out.Field("recovery_s", r.recovery_s);
  if (wall) out.Field("decisions_per_s", r.decisions_per_s);
  out.EndObject();
}

}  // namespace hidane::sim
