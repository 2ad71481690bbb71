#include "gateway/probes.h"

#include <utility>

#include "base/log.h"

namespace hidane::gateway {
namespace {

constexpr size_t kAnswerMax = 16 << 20;
constexpr auto kFirstModelsRetry = std::chrono::milliseconds(200);

Duration Milliseconds(int64_t ms) {
  return std::chrono::milliseconds(ms);
}

}  // namespace

Probes::Probes(Context& context, net::Loop& loop)
    : context_(context), loop_(loop), pool_(loop, net::ClientOptions{}) {}

/// One probe's time: counted, and woken from its sleep by Stop.
class Probes::Running {
 public:
  explicit Running(Probes& probes) : probes_(probes), event_(probes.loop_) {
    ++probes_.context_.probes;
    probes_.sleepers_.push_back(&event_);
  }
  ~Running() {
    std::erase(probes_.sleepers_, &event_);
    --probes_.context_.probes;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  net::Task<> SleepFor(Duration duration) {
    if (!probes_.stopped_) (void)co_await event_.WaitFor(duration);
  }

 private:
  Probes& probes_;
  net::Event event_;
};

void Probes::Stop() {
  stopped_ = true;
  for (net::Event* event : sleepers_) event->Notify();
}

void Probes::Start() {
  for (uint32_t i = 0; i < context_.fleet.size(); ++i) {
    loop_.Spawn(WatchHealth(WorkerId(i)));
    loop_.Spawn(WatchMetrics(WorkerId(i)));
    loop_.Spawn(WatchModels(WorkerId(i)));
  }
  loop_.Spawn(Tick());
}

net::Task<Result<net::FetchResult>> Probes::Get(WorkerId id, std::string_view path) {
  const UpstreamConfig& upstream = context_.fleet.upstream(id);
  net::RequestHead head;
  head.target = std::string(path);
  head.method = "GET";
  head.authority = upstream.authority;
  if (!upstream.api_key.empty()) head.headers.Add("authorization", "Bearer " + upstream.api_key);
  co_return co_await net::Fetch(pool_, context_.addresses[id.value()], std::move(head), {},
                                kAnswerMax, Milliseconds(context_.config->health_timeout_ms()));
}

net::Task<> Probes::WatchHealth(WorkerId id) {
  Running running(*this);
  bool was_ok = true;
  while (!stopped_) {
    const auto answer = co_await Get(id, "/health");
    // An engine without the route is alive all the same.
    const bool ok = answer && (answer->head.status / 100 == 2 || answer->head.status == 404);
    context_.fleet.OnHealth(id, ok);
    if (ok != std::exchange(was_ok, ok))
      log::Warn("worker.probed", {{"worker", context_.fleet.name(id)}, {"ok", ok}});
    co_await running.SleepFor(Milliseconds(context_.config->health_interval_ms()));
  }
}

net::Task<> Probes::WatchMetrics(WorkerId id) {
  Running running(*this);
  while (!stopped_) {
    const auto answer = co_await Get(id, "/metrics");
    if (answer && answer->head.status == 200)
      context_.fleet.OnMetrics(id, ReadEngineMetrics(answer->body.view()));
    co_await running.SleepFor(Milliseconds(context_.config->health_metrics_interval_ms()));
  }
}

net::Task<> Probes::WatchModels(WorkerId id) {
  Running running(*this);
  bool known = false;
  while (!stopped_) {
    const auto answer = co_await Get(id, "/v1/models");
    if (answer && answer->head.status == 200)
      if (auto models = ParseModels(answer->body.view())) {
        context_.fleet.OnModels(id, std::move(*models));
        known = true;
      }
    const Duration interval = Milliseconds(context_.config->health_metrics_interval_ms());
    co_await running.SleepFor(known ? interval : std::min<Duration>(interval, kFirstModelsRetry));
  }
}

net::Task<> Probes::Tick() {
  Running running(*this);
  while (!stopped_) {
    co_await running.SleepFor(std::chrono::seconds(1));
    context_.fleet.WithRouter([](routing::Router& router, TimePoint now) { router.OnTick(now); });
  }
}

}  // namespace hidane::gateway
