#include "serve/serve.h"

#include <chrono>
#include <utility>

#include "net/server.h"
#include "serve/api.h"

namespace hidane::serve {
namespace {

/// How long answers that were cancelled may take to end.
constexpr Duration kCancelMax = std::chrono::seconds(2);

net::Task<> Drain(net::Loop& loop, net::Server& server, Api& api, Duration drain_max) {
  server.Drain();
  server.CloseListener();
  net::Deadline stop(loop, [&loop] { loop.Stop(); });
  net::Deadline cancel(loop, [&api, &stop] {
    api.CancelAll();
    stop.Arm(kCancelMax);
  });
  cancel.Arm(drain_max);
  co_await server.WaitDrained();
  loop.Stop();
}

}  // namespace

Status Run(const ServeOptions& options, engine::Engine& engine, const text::TextModel& text,
           obs::Registry& registry, std::stop_token stop) {
  HIDANE_TRY(const auto address, net::ParseListen(options.listen));
  HIDANE_CHECK_OK(net::CheckPortFree(address));
  Api api(options, engine, text, registry);
  net::Loop loop;
  auto handler = [&api](net::Exchange& x) { return api.Handle(x); };
  HIDANE_TRY(const auto server, net::Server::Listen(loop, address, std::move(handler), {}));
  if (options.on_listening) options.on_listening(server->port());
  const std::stop_callback on_stop(
      stop, [&] { loop.Post([&] { loop.Spawn(Drain(loop, *server, api, options.drain_max)); }); });
  loop.Run();
  return {};
}

}  // namespace hidane::serve
