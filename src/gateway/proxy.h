#pragma once
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/rng.h"
#include "gateway/context.h"
#include "net/client.h"
#include "net/server.h"
#include "prompt/body_reader.h"

namespace hidane::gateway {

/// The data side of one loop: what its calls share, and which request goes where. Loop thread
/// only, but for the constructor.
class Proxy {
 public:
  /// `seed` makes request ids; give each loop its own.
  Proxy(Context& context, net::Loop& loop, uint64_t seed);

  /// One request: `/v1/*` to an engine, the rest answered here. Admin routes are not on this side.
  net::Task<> Handle(net::Exchange& exchange);

  Context& context() { return context_; }
  net::Loop& loop() { return loop_; }
  net::ClientPool& pool() { return pool_; }
  prompt::BodyReader& reader() { return reader_; }
  prompt::ReadOptions read_options() const { return read_options_; }
  const Fleet::Releaser& releaser() const { return releaser_; }

  /// While it lives, the release of `ticket` notifies `event`.
  class Waiting {
   public:
    Waiting(Proxy& proxy, routing::Ticket ticket, net::Event& event)
        : proxy_(proxy), ticket_(ticket) {
      proxy_.waiting_.emplace(ticket, &event);
    }
    ~Waiting() { proxy_.waiting_.erase(ticket_); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Proxy& proxy_;
    routing::Ticket ticket_;
  };
  std::string NewRequestId();

 private:
  Context& context_;
  net::Loop& loop_;
  net::ClientPool pool_;
  prompt::BodyReader reader_;
  prompt::ReadOptions read_options_;
  Rng rng_;
  std::unordered_map<routing::Ticket, net::Event*> waiting_;
  Fleet::Releaser releaser_;  // posts to this loop: any thread may call it
};

}  // namespace hidane::gateway
