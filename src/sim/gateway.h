#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "routing/lru_map.h"
#include "routing/router.h"
#include "sim/orphans.h"
#include "sim/request.h"

namespace hidane::sim {

/// How a request ended for its client.
struct Ending {
  uint64_t id = 0;
  bool ok = false;
  WorkerId worker{};             ///< the one that had it last
  uint32_t cached_tokens = 0;    ///< of the prompt, by the engine's word
  uint32_t expected_cached = 0;  ///< by the router's
  Duration retry_after{};        ///< > 0: refused by admission, with this promise
};

/// What became of a request that was sent to a worker.
enum class Sent : uint8_t {
  kTaken,
  kUnreachable,  ///< no process listens
  kRejected,     ///< 400: it would never fit
};

/// The world around a gateway: engines on one side, clients on the other, time.
class World {
 public:
  virtual Sent Send(const Request& request, WorkerId worker, TimePoint now) = 0;
  virtual void Cancel(uint64_t id, WorkerId worker) = 0;
  virtual void WakeAt(TimePoint at, uint64_t id) = 0;   ///< asks for Gateway::Wake(id)
  virtual uint64_t NewRefreshId(uint32_t replica) = 0;  ///< of a request of the gateway's own
  virtual void OnFirstByte(uint64_t id, TimePoint now) = 0;
  virtual void OnEnd(const Ending& ending, TimePoint now) = 0;

 protected:
  ~World() = default;
};

/// One gateway in virtual time: the real Router, and around it what src/gateway's Call and Fleet
/// do with a request, step by step:
///
///   Arrive -> Route -> [follow: wait for the leader's first byte, bounded] -> OnDispatch -> Send
///     -> FirstToken (followers go) -> Finish (usage, done)
///     `-> unreachable or Reset: OnFault, one failover before the first byte, else the client's
///         error
///
/// A request that was sent is a run, known to engines by the id of the request that began it. With
/// OnLeave::kAttach it may outlive its client, and serve the retry of another id.
///
/// Not thread-safe.
class Gateway {
 public:
  struct Options {
    routing::Params params{};
    routing::HealthParams health{};
    std::string policy = "prefix";
    OnLeave on_leave = OnLeave::kCancel;
    size_t orphans_max = 64;      ///< runs without a client, with OnLeave::kAttach
    const Clock* wall = nullptr;  ///< times Router::Route; nullptr: not timed
  };
  /// kInvalidArgument (param `policy`).
  static Result<Gateway> Make(const Options& options, World& world);

  // A request, by its id. Unknown ids are ignored: their end was told already.
  /// REQUIRES: `request` outlives its OnEnd.
  void Arrive(const Request& request, TimePoint now);
  void Wake(uint64_t id, TimePoint now);  ///< a follower has waited long enough
  /// The client closes its connection if no byte came yet. True: it did, and OnEnd was told.
  bool GiveUp(uint64_t id, TimePoint now);

  // A run.
  void FirstToken(uint64_t run, TimePoint now);
  void Finish(uint64_t run, uint32_t cached_tokens, TimePoint now);
  void Reset(uint64_t run, TimePoint now);  ///< its connection to the worker broke

  /// Once a second: what the real one's timers do, and proof of life of running streams.
  void Tick(TimePoint now);
  /// For membership, probes and telemetry.
  routing::Router& router() { return *router_; }
  const routing::Router& router() const { return *router_; }

  uint64_t decisions() const { return decisions_; }
  Duration decision_time() const { return decision_time_; }  ///< on Options::wall
  uint64_t failovers() const { return failovers_; }
  uint64_t sent() const { return sent_; }            ///< to workers
  uint64_t refreshes() const { return refreshes_; }  ///< of sent()
  uint64_t adopted() const { return adopted_; }      ///< runs, by retries

 private:
  struct Call {
    const Request* request;
    std::unique_ptr<Request> own{};  // `request`, once its client has left
    uint64_t client = 0;             // the request that waits for it; 0: an orphan
    std::optional<Ending> answer{};  // an orphan's, complete
    uint64_t fingerprint = 0;
    routing::Decision decision{};
    uint32_t attempts = 0;
    bool sent = false;      // a worker has it
    bool answered = false;  // the client has a byte
    bool refresh = false;   // the gateway's own, without a client
    TimePoint sent_at{};
    TimePoint waits_until{};  // a follower, at the longest
  };

  Gateway(const Options& options, World& world);
  Result<routing::Decision> Route(const Call& call, std::optional<WorkerId> not_worker,
                                  TimePoint now);
  bool Attach(const Request& retry, uint64_t fingerprint, TimePoint now);
  void Take(Call& call, routing::Decision decision, TimePoint now);
  void Send(Call& call, TimePoint now);
  void Break(Call& call, routing::Fault fault, routing::Outcome outcome, TimePoint now);
  void Close(Call& call, routing::End end, TimePoint now);
  void End(Call& call, Ending ending, TimePoint now);
  void Orphan(Call& call, TimePoint now);
  void Kill(uint64_t run, TimePoint now);
  void Release(const std::vector<routing::Ticket>& followers);
  void RefreshDue(TimePoint now);
  void SendReady(TimePoint now);
  Call* Find(uint64_t run);
  Call* FindOf(uint64_t client);

  Options options_;
  World* world_;
  std::unique_ptr<routing::Router> router_;
  std::map<uint64_t, Call> calls_;                          // by run
  boost::unordered_flat_map<uint64_t, uint64_t> attached_;  // client -> a run of another id
  Orphans orphans_;
  boost::unordered_flat_map<uint64_t, uint64_t> followers_;  // ticket -> id
  std::vector<uint64_t> ready_;                              // to be sent, in order
  routing::LruMap<prompt::Identity> statics_;                // by K1, with keep_warm
  uint64_t refreshes_ = 0;
  uint64_t decisions_ = 0;
  uint64_t failovers_ = 0;
  uint64_t sent_ = 0;
  uint64_t adopted_ = 0;
  Duration decision_time_{};
};

}  // namespace hidane::sim
