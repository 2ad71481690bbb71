#include "routing/fleet.h"

#include <algorithm>

namespace hidane::routing {
namespace {

WorkerId IdOf(const std::unique_ptr<WorkerState>& worker) {
  return worker->spec.id;
}

}  // namespace

void Fleet::Put(const WorkerSpec& spec, TimePoint now) {
  if (WorkerState* const known = Find(spec.id)) {
    known->spec = spec;
    if (spec.kv_capacity_tokens != 0) known->SetCapacity(spec.kv_capacity_tokens);
  } else {
    const auto at = std::ranges::lower_bound(workers_, spec.id, {}, IdOf);
    workers_.insert(
        at, std::make_unique<WorkerState>(spec, params_, health_, &PoolFor(spec.model).speed));
  }
  RebuildPools(now);
}

void Fleet::Remove(WorkerId id, TimePoint now) {
  std::erase_if(workers_, [id](const auto& w) { return IdOf(w) == id; });
  RebuildPools(now);
}

WorkerState* Fleet::Find(WorkerId id) const {
  const auto at = std::ranges::lower_bound(workers_, id, {}, IdOf);
  return at != workers_.end() && IdOf(*at) == id ? at->get() : nullptr;
}

Pool* Fleet::PoolOf(std::string_view model) const {
  Pool* any = nullptr;
  for (const auto& pool : pools_) {
    if (pool->workers.empty()) continue;
    if (pool->model == model) return pool.get();
    if (pool->model.empty()) any = pool.get();
  }
  return any;
}

Pool& Fleet::PoolFor(const std::string& model) {
  const auto at = std::ranges::find(pools_, model, [](const auto& p) -> auto& { return p->model; });
  if (at != pools_.end()) return **at;
  auto pool = std::make_unique<Pool>(Pool{.speed = EngineSpeed(params_.prefill_tokens_per_s),
                                          .lifetime = {},
                                          .model = model,
                                          .workers = {},
                                          .policy = make_(params_),
                                          .output_tokens = double(params_.output_tokens)});
  return *pools_.emplace_back(std::move(pool));
}

void Fleet::RebuildPools(TimePoint now) {
  for (const auto& pool : pools_) pool->workers.clear();
  for (const auto& worker : workers_) {
    PoolFor(worker->spec.model).workers.push_back(worker.get());
  }
  for (const auto& pool : pools_) pool->policy->OnMembers(pool->workers, now);
}

void Fleet::Changed(const WorkerState& worker, TimePoint now) {
  Pool* const pool = PoolOf(worker.spec.model);
  pool->policy->OnMembers(pool->workers, now);
}

void Fleet::OnFault(WorkerState& worker, Fault fault, uint64_t fingerprint, TimePoint now) {
  const auto& workers = PoolOf(worker.spec.model)->workers;
  const auto out = std::ranges::count_if(
      workers, [now](const WorkerState* w) { return w->health.state(now) != HealthState::kUp; });
  const bool may_eject = MayEject(health_, workers.size(), static_cast<size_t>(out));
  if (!worker.health.OnFault(fault, fingerprint, may_eject, now)) return;
  Emptied(worker);
  Changed(worker, now);
}

void Fleet::Emptied(WorkerState& worker) {
  worker.index.Clear();
  PoolOf(worker.spec.model)->policy->OnEmptied(worker);
}

void Fleet::SetPolicy(std::string_view name, PolicyMaker make) {
  policy_ = name;
  make_ = std::move(make);
  for (const auto& pool : pools_) {
    pool->policy = make_(params_);
    pool->policy->OnMembers(pool->workers,
                            TimePoint{});  // ejected ones take part from the next tick
  }
}

}  // namespace hidane::routing
