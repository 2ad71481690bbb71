#include "net/client.h"
#include <gtest/gtest.h>
#include "net/server.h"
namespace hidane::net {
namespace {
Task<> Echo(Exchange& exchange) {
  auto body = co_await exchange.ReadBody(1 << 20);
  if (!body) co_return;
  ResponseHead head;
  head.status = 200;
  head.headers.Add("x-echo", exchange.head().path());
  if (exchange.head().path() == "/stream") {
    exchange.WriteHead(std::move(head));
    static_cast<void>(co_await exchange.Write(body->view()));
    static_cast<void>(co_await exchange.Finish("end"));
    co_return;
  }
  static_cast<void>(co_await exchange.Respond(std::move(head), body->view()));
}
Task<> Calls(Loop& loop, Address address) {
  ClientPool pool(loop, {});
  for (const char* path : {"/a", "/stream", "/b"}) {
    RequestHead head;
    head.method = "POST";
    head.target = path;
    head.authority = "x";
    std::string body(100000, 'x');
    auto r = co_await Fetch(pool, address, std::move(head), body, 1 << 20, std::chrono::seconds(5));
    EXPECT_TRUE(r) << r.error().what;
    if (r) {
      EXPECT_EQ(r->body.size(), body.size() + (std::string(path) == "/stream" ? 3 : 0));
    }
    EXPECT_EQ(pool.idle(), 1u);
  }
  loop.Stop();
}
TEST(Smoke, Works) {
  Loop loop;
  auto address = *ParseListen("127.0.0.1:0");
  auto server = Server::Listen(loop, address, Echo, {});
  ASSERT_TRUE(server);
  address.set_port((*server)->port());
  loop.Spawn(Calls(loop, address));
  loop.Run();
}
}  // namespace
}  // namespace hidane::net
