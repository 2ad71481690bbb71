#include "gateway/fleet.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_out.h"
#include "gateway/routing_params.h"

namespace hidane::gateway {
namespace {

constexpr std::string_view kFeedbackOff =
    "off: start vLLM with --enable-prompt-tokens-details, SGLang with --enable-cache-report";

}  // namespace

Fleet::Fleet(const Config& config, const Clock& clock)
    : config_(config),
      clock_(clock),
      router_(RoutingParamsOf(config), HealthParamsOf(config)),
      workers_(config.upstreams.size()) {
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    names_.push_back(config.upstreams[i]->name());
    router_.PutWorker(SpecOf(WorkerId(i)), clock_.Now());
  }
  (void)router_.SetPolicy(config.routing_policy());  // the configuration allows only known names
}

routing::WorkerSpec Fleet::SpecOf(WorkerId id) const {
  const UpstreamConfig& upstream = *config_.upstreams[id.value()];
  routing::WorkerSpec spec;
  spec.id = id;
  spec.name = fmt::format("{}:{}", upstream.host, upstream.port);
  spec.kv_capacity_tokens = static_cast<uint64_t>(upstream.kv_capacity_tokens());
  const auto& models = workers_[id.value()].models;
  if (models && models->size() == 1) spec.model = models->front().id;
  return spec;
}

Result<routing::Decision> Fleet::Route(const routing::RouteRequest& request,
                                       const Releaser& releaser) {
  const std::lock_guard lock(mutex_);
  auto decision = router_.Route(request, clock_.Now());
  if (decision && decision->flight == routing::Flight::kFollow)
    followers_.emplace(decision->ticket, &releaser);
  return decision;
}

Fleet::Released Fleet::Take(const std::vector<routing::Ticket>& tickets) {
  Released released;
  for (const routing::Ticket ticket : tickets)
    if (const auto it = followers_.find(ticket); it != followers_.end()) {
      released.emplace_back(it->second, ticket);
      followers_.erase(it);
    }
  return released;
}

void Fleet::FirstByte(routing::Ticket ticket) {
  Released released;
  {
    const std::lock_guard lock(mutex_);
    released = Take(router_.OnFirstByte(ticket, clock_.Now()));
  }
  for (const auto& [releaser, follower] : released) (*releaser)(follower);
}

void Fleet::Done(routing::Ticket ticket, routing::End end) {
  Released released;
  {
    const std::lock_guard lock(mutex_);
    followers_.erase(ticket);
    released = Take(router_.OnDone(ticket, end, clock_.Now()));
  }
  for (const auto& [releaser, follower] : released) (*releaser)(follower);
}

void Fleet::OnHealth(WorkerId id, bool ok) {
  const std::lock_guard lock(mutex_);
  router_.OnProbe(id, ok, clock_.Now());
}

void Fleet::OnModels(WorkerId id, std::vector<ModelCard> models) {
  const std::lock_guard lock(mutex_);
  const std::string before = SpecOf(id).model;
  workers_[id.value()].models = std::move(models);
  const routing::WorkerSpec spec = SpecOf(id);
  if (spec.model != before) router_.PutWorker(spec, clock_.Now());
}

void Fleet::OnMetrics(WorkerId id, const EngineMetrics& metrics) {
  const std::lock_guard lock(mutex_);
  EngineMetrics& before = workers_[id.value()].metrics;
  if (Restarted(before, metrics)) router_.ClearCache(id);
  before = metrics;
  routing::Telemetry telemetry;
  if (config_.upstreams[id.value()]->kv_capacity_tokens() == 0)
    telemetry.kv_capacity_tokens = metrics.kv_capacity_tokens;
  telemetry.running = metrics.running;
  telemetry.waiting = metrics.waiting;
  telemetry.start_time_s = metrics.start_time_s;
  router_.UpdateWorker(id, telemetry, clock_.Now());
}

void Fleet::OnUsageSeen(WorkerId id, const Usage& usage) {
  const std::lock_guard lock(mutex_);
  Feedback& feedback = workers_[id.value()].feedback;
  // vLLM leaves the count out when it is 0: one answer that has it is proof, one without is not.
  if (usage.cached_tokens >= 0)
    feedback = Feedback::kOn;
  else if (feedback == Feedback::kUnknown)
    feedback = Feedback::kOff;
}

Status Fleet::CheckModel(std::string_view model) const {
  const std::lock_guard lock(mutex_);
  for (const Worker& worker : workers_) {
    if (!worker.models) return {};
    for (const ModelCard& card : *worker.models)
      if (card.id == model) return {};
  }
  return Fail(Code::kNotFound, fmt::format("no model \"{}\" here", model), "model");
}

std::string Fleet::AnyModel() const {
  const std::lock_guard lock(mutex_);
  for (const Worker& worker : workers_)
    if (worker.models && !worker.models->empty()) return worker.models->front().id;
  return {};
}

std::vector<routing::WorkerView> Fleet::Views() const {
  const std::lock_guard lock(mutex_);
  return router_.Workers(clock_.Now());
}

bool Fleet::AnyUp() const {
  const auto views = Views();
  return std::any_of(views.begin(), views.end(), [](const routing::WorkerView& view) {
    return view.health == routing::HealthState::kUp ||
           view.health == routing::HealthState::kHalfOpen;
  });
}

std::string Fleet::Models() const {
  std::vector<std::vector<ModelCard>> cards;
  {
    const std::lock_guard lock(mutex_);
    for (const Worker& worker : workers_)
      cards.push_back(worker.models.value_or(std::vector<ModelCard>()));
  }
  return MergeModels(cards);
}

std::string Fleet::Workers() const {
  const std::lock_guard lock(mutex_);
  JsonWriter w;
  w.BeginObject().Field("policy", router_.policy()).Key("workers").BeginArray();
  for (const routing::WorkerView& view : router_.Workers(clock_.Now())) {
    const Worker& worker = workers_[view.id.value()];
    w.BeginObject().Field("name", names_[view.id.value()]);
    w.Field("url", config_.upstreams[view.id.value()]->url());
    w.Field("health", routing::Name(view.health)).Field("draining", view.draining);
    w.Key("models").BeginArray();
    if (worker.models)
      for (const ModelCard& card : *worker.models) w.String(card.id);
    w.EndArray();
    w.Field("kv_capacity_tokens", view.kv_capacity_tokens);
    w.Field("assigned_tokens", view.assigned_tokens).Field("indexed_tokens", view.indexed_tokens);
    w.Field("prefixes", view.prefixes).Field("in_flight", view.in_flight);
    w.Field("running", view.running).Field("waiting", view.waiting).Field("wait_s", view.wait_s);
    w.Field("prefill_tokens_per_s", view.prefill_tokens_per_s);
    w.Field("feedback", worker.feedback == Feedback::kOn    ? "on"
                        : worker.feedback == Feedback::kOff ? kFeedbackOff
                                                            : "unknown");
    w.EndObject();
  }
  w.EndArray().EndObject();
  return w.Take();
}

}  // namespace hidane::gateway
