// What a plain relay on this room costs: client -> relay -> upstream on loopback, each on a thread
// of its own. `cpu_us` is the relay thread's CPU time for a request; compare with a proxy's of the
// same machine (bench/router_cost).
#include <benchmark/benchmark.h>
#include <pthread.h>

#include <ctime>

#include "net/loopback.h"

namespace hidane::net {
namespace {

Task<> AnswerShort(Exchange& x) {
  const auto body = co_await x.ReadBody(64 << 20);
  const std::string answer(2048, 'x');
  ResponseHead head;
  if (body) static_cast<void>(co_await x.Respond(std::move(head), answer));
}

struct Relay {
  Address upstream;
  std::unique_ptr<ClientPool> pool;

  static Task<> Serve(std::shared_ptr<Relay> relay, Exchange& x) {
    const auto body = co_await x.ReadBody(64 << 20);
    if (!body) co_return;
    if (!relay->pool) relay->pool = std::make_unique<ClientPool>(x.loop(), ClientOptions{});
    ClientStream call(*relay->pool);
    const std::string_view pieces[] = {body->view()};
    RequestHead request = x.head();
    const auto sent =
        co_await call.Send(relay->upstream, std::move(request), pieces, CallTimeouts{}, true);
    if (!sent) co_return;
    auto answer = co_await call.ReadHead();
    if (!answer) co_return;
    x.WriteHead(std::move(*answer));
    for (bool more = true; more;) {
      const auto some = co_await call.ReadSome();
      if (!some) co_return;
      more = !some->empty();
      if (more) static_cast<void>(co_await x.Write(*some));
    }
    static_cast<void>(co_await x.Finish());
  }
};

double ThreadCpu(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void BM_Relay(benchmark::State& state) {
  LoopbackServer upstream(AnswerShort);
  const auto relay = std::make_shared<Relay>();
  relay->upstream = upstream.address();
  LoopbackServer server([relay](Exchange& x) { return Relay::Serve(relay, x); });
  clockid_t clock{};
  server.OnLoop([&] { ::pthread_getcpuclockid(::pthread_self(), &clock); });

  const std::string body(static_cast<size_t>(state.range(0)), 'b');
  const std::string request =
      "POST /v1 HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  RawSocket client(server.address());
  const double before = ThreadCpu(clock);
  for (auto _ : state) {
    client.Send(request);
    const std::string seen = client.ReadUntil("\r\n\r\n");
    for (size_t left = 2048 - (seen.size() - seen.find("\r\n\r\n") - 4); left > 0;) {
      const std::string some = client.ReadUntil("x");
      left -= std::min(left, some.size());
    }
  }
  state.counters["cpu_us"] =
      (ThreadCpu(clock) - before) * 1e6 / static_cast<double>(state.iterations());
  server.OnLoop([&] { relay->pool.reset(); });
}
BENCHMARK(BM_Relay)->Arg(2 << 10)->Arg(117 << 10)->Arg(400 << 10)->UseRealTime();

}  // namespace
}  // namespace hidane::net

BENCHMARK_MAIN();
