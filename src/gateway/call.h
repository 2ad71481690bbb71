#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/fleet.h"
#include "gateway/proxy.h"
#include "gateway/usage.h"

namespace hidane::gateway {

/// The life of one request, from its head to its last byte; docs/life_of_a_request.md follows it.
/// Whatever happens, the decision that the router made reaches its end exactly once. Loop thread
/// only.
class Call {
 public:
  Call(Proxy& proxy, net::Exchange& exchange);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  net::Task<> Run();

 private:
  // Before an engine is touched.
  net::Task<Status> ReadBody();
  Status Identify();
  Status Route();
  Result<routing::Decision> Choose(std::optional<WorkerId> not_worker);
  void Take(routing::Decision decision);
  net::Task<Status> WaitForPrefix();

  // With an engine.
  net::Task<Status> Attempt();
  net::Task<Status> Converse(net::ClientStream& engine, bool reuse);
  net::RequestHead HeadForEngine();
  net::Task<Status> Relay(net::ClientStream& engine, net::ResponseHead answer);
  net::ResponseHead HeadForClient(const net::ResponseHead& answer);
  std::string_view Watched(std::string_view bytes);
  net::Task<Status> BreakOff(Error error);

  // What the router learns.
  void OnFirstByte();
  void KeepStaticPart();
  void OnUsage(const Usage& usage);
  Status Broken(const net::ClientStream& engine, Error error);
  bool FailOver(routing::Outcome outcome);
  void Fault(routing::Fault fault);
  void End(routing::End end);

  void OnClientGone();
  void Log() const;
  double Elapsed() const;
  Context& context() const { return proxy_.context(); }

  Proxy& proxy_;
  net::Exchange& exchange_;
  const TimePoint begun_;
  std::string request_id_;

  net::Buffer body_;  // until no other engine can need it
  size_t body_bytes_ = 0;
  prompt::Body prompt_;
  std::optional<prompt::Api> api_;
  std::array<std::string_view, 3> pieces_;  // of the body as the engine gets it
  bool streams_tokens_ = false;             // a chat or completions stream: has a usage event
  uint64_t fingerprint_ = 0;

  std::optional<routing::Decision> decision_;
  bool open_ = false;  // decision_ has not ended
  TimePoint dispatched_{};
  uint32_t attempts_ = 0;
  bool answered_ = false;                  // a byte of the answer's body came
  std::optional<routing::Decision> next_;  // where the last attempt is made anew

  net::ClientStream* engine_ = nullptr;  // the one to abort
  net::Event released_;
  net::Deadline silence_;  // of the engine
  bool timed_out_ = false;
  bool gone_ = false;  // the client

  std::optional<UsageFilter> events_;  // an SSE answer
  UsageTail tail_;                     // any other
  std::optional<Usage> usage_;
  std::optional<routing::Regret> regret_;
  TimePoint progress_{};
  int http_status_ = 0;
  double ttft_s_ = 0;
};

}  // namespace hidane::gateway
