#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "prompt/identity.h"
#include "routing/decision.h"
#include "routing/delta.h"
#include "routing/failover.h"
#include "routing/health.h"
#include "routing/keep_warm.h"
#include "routing/kv_event.h"
#include "routing/params.h"
#include "routing/policy_maker.h"
#include "routing/worker.h"

namespace hidane::routing {

/// What a request says beside its prompt.
struct RouteRequest {
  const prompt::Identity& identity;
  std::optional<uint32_t> max_tokens{};
  uint64_t fingerprint = 0;              ///< of the request's bytes and tenant, for health
  std::optional<WorkerId> not_worker{};  ///< failover: the one that just failed
};

/// Usage as the engine's answer reported it.
struct Usage {
  uint32_t prompt_tokens = 0;
  uint32_t output_tokens = 0;
  std::optional<uint32_t> cached_tokens{};  ///< absent: the engine doesn't report it
};

/// How a routed request ended.
enum class End : uint8_t {
  kComplete,   ///< the whole answer came, whatever its status
  kFault,      ///< the worker's fault; OnFault told which
  kAbandoned,  ///< the client left, or it was never sent
};

/// Decides which worker serves a request, and keeps all that the decision needs: membership,
/// health, placement, prefix index, ledger of dispatched work, learned rates. Pure: time comes
/// in with each call.
///
/// A request's life: Route, [wait while kFollow], OnDispatch, OnFirstByte, [OnUsage], OnDone.
/// Route counts the request at once, so that two requests routed back to back see each other;
/// every decision must reach OnDone exactly once, sent or not.
///
/// Threads: not thread-safe. The gateway shares one Router between its loops behind one mutex
/// held for one call (microseconds). Snapshots (Workers) are values.
class Router {
 public:
  explicit Router(const Params& params = {}, const HealthParams& health = {});
  ~Router();
  Router(Router&&) noexcept;

  // Membership.
  /// Adds a worker or replaces its spec. A changed name or model means another process: its
  /// cache counts as empty.
  void PutWorker(const WorkerSpec& spec, TimePoint now);
  void RemoveWorker(WorkerId id, TimePoint now);                ///< unknown ids are ignored
  void DrainWorker(WorkerId id, bool draining, TimePoint now);  ///< no new requests
  void UpdateWorker(WorkerId id, const Telemetry& telemetry, TimePoint now);
  void ClearCache(WorkerId id);  ///< the engine lost its prefix cache
  /// What the worker's engine published of its prefix cache, in order; whole batches are cheaper.
  void OnKvEvents(WorkerId id, std::span<const KvEvent> events);

  // A request.
  /// kNotFound (param `model`): no worker serves the model. kUnavailable: all that do are out.
  Result<Decision> Route(const RouteRequest& request, TimePoint now);
  /// Prefixes that would leave a worker's cache before long, though they are at home there, unless
  /// a request uses them. Call about once a second, and send one for each: RouteRefresh.
  std::vector<Refresh> TakeRefreshes(TimePoint now);
  /// As Route, for a request of the gateway's own to this worker: a static prefix, and one token of
  /// answer. It counts in no share of load. kUnavailable: the worker is out, or not a member.
  Result<Decision> RouteRefresh(const prompt::Identity& prefix, WorkerId worker, TimePoint now);
  /// What Route would decide, without a ticket; nothing changes.
  Result<Decision> Explain(const RouteRequest& request, TimePoint now) const;
  void OnDispatch(Ticket ticket, TimePoint now);
  /// The first byte of a 2xx answer. Returns followers that may be dispatched now.
  std::vector<Ticket> OnFirstByte(Ticket ticket, TimePoint now);
  /// Bytes arrived later in a stream: proof of life. Call at most about once a second.
  void OnProgress(Ticket ticket, TimePoint now);
  /// What was predicted wrongly; empty where the engine did not report cached tokens.
  std::optional<Regret> OnUsage(Ticket ticket, const Usage& usage, TimePoint now);
  /// Ejects the worker where that is due. Call before OnDone(kFault).
  void OnFault(Ticket ticket, Fault fault, TimePoint now);
  /// Returns followers that may be dispatched now.
  std::vector<Ticket> OnDone(Ticket ticket, End end, TimePoint now);

  /// No turn of the conversation (K2) is expected for now: its memory may be given away. For
  /// admission, which knows who waits. An unknown one is ignored.
  void LeaveConversation(std::string_view model, uint64_t k2);

  // Health.
  void OnProbe(WorkerId id, bool ok, TimePoint now);
  /// Ejects workers that owe bytes far past prediction. Call about once a second.
  void OnTick(TimePoint now);
  bool AllowFailover(const Attempt& attempt, uint64_t fingerprint, TimePoint now);

  // Policy.
  /// One of Policies(); `prefix` is the default. kInvalidArgument (param `policy`) for another
  /// name. Requests under way are not touched.
  Status SetPolicy(std::string_view name);
  /// One that isn't in Policies(), made anew for each model: for experiments.
  void SetPolicy(std::string_view name, PolicyMaker make);
  std::string_view policy() const;
  static std::span<const std::string_view> Policies();

  // Agreement with other gateways (Params::replica) on where prefixes live.
  /// Changes of home made here since the last call, in order. At most 65,536 are kept.
  std::vector<Delta> TakeDeltas();
  /// What another gateway told, in any order, any number of times. Workers that aren't members
  /// count from when they are; models that no worker serves are ignored.
  void Merge(const Delta& delta, TimePoint now);
  /// What rebuilds this gateway's tables in another one.
  std::vector<Delta> Snapshot() const;

  std::vector<WorkerView> Workers(TimePoint now) const;
  double tokens_per_byte(std::string_view model) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hidane::routing
