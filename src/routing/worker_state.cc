#include "routing/worker_state.h"

#include "base/hash.h"

namespace hidane::routing {

WorkerState::WorkerState(WorkerSpec of, const Params& params, const HealthParams& health_params,
                         const EngineSpeed* pool_speed)
    : spec(std::move(of)),
      key(Xxh3(spec.name)),
      capacity_tokens(spec.kv_capacity_tokens != 0 ? spec.kv_capacity_tokens
                                                   : params.kv_capacity_tokens),
      health(health_params),
      index(capacity_tokens),
      speed(spec.prefill_tokens_per_s > 0 ? EngineSpeed(spec.prefill_tokens_per_s)
                                          : EngineSpeed(pool_speed)) {}

void WorkerState::SetCapacity(uint64_t tokens) {
  capacity_tokens = tokens;
  index.SetCapacity(static_cast<uint64_t>(static_cast<double>(tokens) * trust));
}

void WorkerState::Trust(bool held) {
  constexpr double kTrustMin = 0.5;
  trust = held ? std::min(1.0, trust * 1.01) : std::max(kTrustMin, trust * 0.95);
  SetCapacity(capacity_tokens);
}

}  // namespace hidane::routing
