#pragma once
#include <string_view>
#include <vector>

#include "gateway/context.h"
#include "net/client.h"
#include "net/loop.h"

namespace hidane::gateway {

/// Asks every engine how it is, on one loop: `/health` often, `/metrics` and `/v1/models` now and
/// then, each on its own so that one that hangs holds up nothing. What can't be read changes
/// nothing but health.
class Probes {
 public:
  Probes(Context& context, net::Loop& loop);
  void Start();  ///< before the loop runs
  /// Ends the probes soon, at the latest when those under way have their answers; context.probes
  /// is then 0. On the loop.
  void Stop();

 private:
  class Running;
  net::Task<> WatchHealth(WorkerId id);
  net::Task<> WatchMetrics(WorkerId id);
  net::Task<> WatchModels(WorkerId id);
  net::Task<> Tick();
  net::Task<Result<net::FetchResult>> Get(WorkerId id, std::string_view path);

  Context& context_;
  net::Loop& loop_;
  net::ClientPool pool_;
  bool stopped_ = false;
  std::vector<net::Event*> sleepers_;
};

}  // namespace hidane::gateway
