#pragma once
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "gateway/config.h"
#include "gateway/models.h"
#include "gateway/telemetry.h"
#include "gateway/usage.h"
#include "routing/router.h"

namespace hidane::gateway {

/// The engines behind the gateway, as all its loops see them: the one Router under its mutex, and
/// what the probes learned. Thread-safe; the lock is held for microseconds.
class Fleet {
 public:
  Fleet(const Config& config, const Clock& clock);

  size_t size() const { return workers_.size(); }
  const UpstreamConfig& upstream(WorkerId id) const { return *config_.upstreams[id.value()]; }
  std::string_view name(WorkerId id) const { return names_[id.value()]; }

  /// Calls `fn(router, now)` under the lock. It must neither block nor call the fleet.
  template <class Fn>
  auto WithRouter(Fn&& fn) {
    const std::lock_guard lock(mutex_);
    return fn(router_, clock_.Now());
  }

  /// Called, from any thread, when a follower may go.
  using Releaser = std::function<void(routing::Ticket)>;

  /// Router::Route. A decision that says kFollow is released through `releaser`, which must
  /// outlive the fleet's use: until Done for its ticket.
  Result<routing::Decision> Route(const routing::RouteRequest& request, const Releaser& releaser);
  void FirstByte(routing::Ticket ticket);
  void Done(routing::Ticket ticket, routing::End end);

  // What the probes found.
  void OnHealth(WorkerId id, bool ok);
  void OnModels(WorkerId id, std::vector<ModelCard> models);
  void OnMetrics(WorkerId id, const EngineMetrics& metrics);
  /// An answer of the worker carried usage: does it say what was cached?
  void OnUsageSeen(WorkerId id, const Usage& usage);

  /// kNotFound when no engine is known to serve `model` and all have said what they serve.
  Status CheckModel(std::string_view model) const;
  /// A model that some engine serves, for requests that name none; empty while none is known.
  std::string AnyModel() const;
  bool AnyUp() const;           ///< a worker may take a request
  std::string Models() const;   ///< the answer of `/v1/models`
  std::string Workers() const;  ///< the answer of `/hidane/workers`
  std::vector<routing::WorkerView> Views() const;

 private:
  enum class Feedback : uint8_t { kUnknown, kOn, kOff };
  struct Worker {
    std::optional<std::vector<ModelCard>> models;  // nullopt: it has not said yet
    EngineMetrics metrics;
    Feedback feedback = Feedback::kUnknown;
  };
  using Released = std::vector<std::pair<const Releaser*, routing::Ticket>>;
  routing::WorkerSpec SpecOf(WorkerId id) const;
  Released Take(const std::vector<routing::Ticket>& tickets);  ///< under the lock

  const Config& config_;
  const Clock& clock_;
  std::vector<std::string> names_;
  mutable std::mutex mutex_;
  routing::Router router_;
  std::vector<Worker> workers_;
  std::unordered_map<routing::Ticket, const Releaser*> followers_;
};

}  // namespace hidane::gateway
