#pragma once
#include "gateway/context.h"
#include "net/client.h"
#include "net/loop.h"

namespace hidane::gateway {

/// With `routing.keep_warm`: uses static prefixes again before engines evict them, by requests of
/// the gateway's own (docs/placement.md, "Keeping prefixes warm"). On one loop, as Probes.
class KeepWarm {
 public:
  static constexpr Duration kLongest = std::chrono::seconds(5);  ///< of one request

  KeepWarm(Context& context, net::Loop& loop);
  void Start();  ///< before the loop runs
  /// As Probes::Stop; those under way count in context.probes. On the loop.
  void Stop();

 private:
  net::Task<> Run();
  net::Task<> Send(routing::Refresh refresh);
  net::RequestHead HeadFor(const StaticPart& part, WorkerId worker) const;
  void Learn(routing::Ticket ticket, WorkerId worker, const Usage& usage);

  Context& context_;
  net::Loop& loop_;
  net::ClientPool pool_;
  net::Event woken_;
  bool stopped_ = false;
};

}  // namespace hidane::gateway
