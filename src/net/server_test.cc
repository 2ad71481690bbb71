#include "net/server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <future>

#include "net/loopback.h"

namespace hidane::net {
namespace {

using std::chrono::milliseconds;

/// Answers a request with what it has seen: `METHOD target size`.
Task<> Mirror(Exchange& x) {
  const auto body = co_await x.ReadBody(1000);
  ResponseHead head;
  if (!body) {
    head.status = body.error().code == Code::kTooLarge           ? 413
                  : body.error().code == Code::kDeadlineExceeded ? 408
                                                                 : 400;
    static_cast<void>(co_await x.Respond(std::move(head), "refused"));
    co_return;
  }
  std::string text = x.head().method + " " + x.head().target + " " + std::to_string(body->size());
  static_cast<void>(co_await x.Respond(std::move(head), text));
}

/// Doesn't touch the body.
Task<> Ignore(Exchange& x) {
  ResponseHead head;
  head.status = 401;
  static_cast<void>(co_await x.Respond(std::move(head), "no"));
}

Task<> Stream(Exchange& x) {
  ResponseHead head;
  x.WriteHead(std::move(head));
  static_cast<void>(co_await x.Write("one"));
  static_cast<void>(co_await x.Write("two"));
  if (x.head().path() == "/abort") {
    x.Abort();
    co_return;
  }
  if (x.head().path() == "/forget") co_return;
  static_cast<void>(co_await x.Finish("three"));
}

Task<> Nothing(Exchange&) {
  co_return;
}

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
constexpr std::string_view kLast = "GET /z HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

std::string Ask(LoopbackServer& server, std::string_view bytes) {
  RawSocket client(server.address());
  client.Send(bytes);
  return client.ReadToEnd();
}

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}
size_t Times(const std::string& text, std::string_view part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
  return n;
}

TEST(ServerTest, KeepsTheConnectionUntilToldToClose) {
  LoopbackServer server(Mirror);
  RawSocket client(server.address());
  for (int i = 0; i < 3; ++i) {
    client.Send(kGet);
    EXPECT_TRUE(client.ReadUntil("GET /a 0").starts_with("HTTP/1.1 200 OK\r\n"));
  }
  client.Send(kLast);
  const std::string last = client.ReadToEnd();
  EXPECT_TRUE(Has(last, "connection: close\r\n"));
  EXPECT_TRUE(last.ends_with("GET /z 0<end>"));
}

TEST(ServerTest, AnswersPipelinedRequestsInOrder) {
  LoopbackServer server(Mirror);
  const std::string seen = Ask(server,
                               "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
                               "POST /2 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                               "2\r\nab\r\n0\r\n\r\n" +
                                   std::string(kGet) + std::string(kLast));
  const size_t one = seen.find("POST /1 3"), two = seen.find("POST /2 2");
  const size_t three = seen.find("GET /a 0"), four = seen.find("GET /z 0");
  EXPECT_LT(one, two);
  EXPECT_LT(two, three);
  EXPECT_LT(three, four);
  EXPECT_NE(four, std::string::npos);
}

TEST(ServerTest, ABodyIsNeverReadAsARequest) {  // H13
  LoopbackServer server(Ignore);
  const std::string seen =
      Ask(server, "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(kGet.size()) +
                      "\r\n\r\n" + std::string(kGet) + std::string(kLast));
  EXPECT_EQ(Times(seen, "HTTP/1.1 401"), 2u);
}

Task<> Count(Exchange& x) {
  const auto body = co_await x.ReadBody(1 << 20);
  ResponseHead head;
  const std::string text = body ? std::to_string(body->size()) + "!" : "refused";
  static_cast<void>(co_await x.Respond(std::move(head), text));
}

// The read that ends a body looks one byte further.
TEST(ServerTest, ALargeBodyEndsWhereTheNextRequestBegins) {
  LoopbackServer server(Count);
  RawSocket client(server.address());
  client.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nx");
  std::this_thread::sleep_for(milliseconds(20));  // the handler reads the body on its own
  client.Send(std::string(99'999, 'x') + std::string(kLast));
  const std::string seen = client.ReadToEnd();
  EXPECT_LT(seen.find("100000!"), seen.find("0!<end>"));
  EXPECT_TRUE(Has(seen, "\r\n\r\n0!<end>"));
}

TEST(ServerTest, RefusalsCloseAndNothingBehindThemIsParsed) {
  LoopbackServer server(Mirror);
  const std::string seen =
      Ask(server,
          "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n"
          "\r\n0\r\n\r\n" +
              std::string(kGet));
  EXPECT_TRUE(seen.starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(Has(seen, "connection: close\r\n"));
  EXPECT_EQ(Times(seen, "HTTP/1.1 "), 1u);
  EXPECT_TRUE(Has(Ask(server, kLast), "200 OK")) << "a clean request right after";
}

TEST(ServerTest, BadChunksAreRefusedAndClose) {  // H4
  LoopbackServer server(Mirror);
  const std::string seen = Ask(server,
                               "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                               "-2\r\nab\r\n0\r\n\r\n" +
                                   std::string(kGet));
  EXPECT_TRUE(seen.starts_with("HTTP/1.1 400 "));
  EXPECT_EQ(Times(seen, "HTTP/1.1 "), 1u);
}

TEST(ServerTest, ABodyOverTheLimitIs413BeforeItHasCome) {  // H5
  LoopbackServer server(Mirror);
  const std::string seen =
      Ask(server, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000\r\n\r\n");
  EXPECT_TRUE(seen.starts_with("HTTP/1.1 413 "));
  RawSocket endless(server.address());
  endless.Send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 3; ++i) endless.Send("190\r\n" + std::string(0x190, 'x') + "\r\n");
  EXPECT_TRUE(endless.ReadToEnd().starts_with("HTTP/1.1 413 "));
}

TEST(ServerTest, ContinueComesWhenTheBodyIsWanted) {  // H6
  LoopbackServer server(Mirror);
  RawSocket client(server.address());
  client.Send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("ab");
  EXPECT_TRUE(Has(client.ReadUntil("POST /x 2"), "200 OK"));
}

TEST(ServerTest, AFinalAnswerInsteadOfContinueCloses) {  // H6
  LoopbackServer server(Ignore);
  RawSocket client(server.address());
  client.Send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 27\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_TRUE(client.ReadUntil("no").starts_with("HTTP/1.1 401 "));
  client.Send(kGet);  // whatever follows is no request
  EXPECT_EQ(Times(client.ReadToEnd(), "HTTP/1.1"), 0u);
}

TEST(ServerTest, ASlowHeadIs408AndASilentConnectionJustCloses) {  // H7
  LoopbackServer server(Mirror,
                        {.head_timeout = milliseconds(50), .idle_timeout = milliseconds(60)});
  RawSocket slow(server.address());
  slow.Send("GET / HT");
  EXPECT_TRUE(slow.ReadToEnd().starts_with("HTTP/1.1 408 "));
  RawSocket silent(server.address());
  EXPECT_EQ(silent.ReadToEnd(), "<end>");
}

TEST(ServerTest, ABodyUnderTheMinimumRateIs408) {  // H7
  LoopbackServer server(Mirror, {.body_window = milliseconds(40), .body_window_bytes = 100});
  RawSocket client(server.address());
  client.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 900\r\n\r\n");
  std::string answer;
  for (int i = 0; i < 100 && answer.empty(); ++i) {
    client.Send("x");
    answer = client.ReadUntil("408", 10);
    if (answer == "<silence>") answer.clear();
  }
  EXPECT_TRUE(Has(answer, "408"));
}

TEST(ServerTest, StreamsInChunksAndKeepsTheConnection) {
  LoopbackServer server(Stream);
  RawSocket client(server.address());
  client.Send(kGet);
  const std::string seen = client.ReadUntil("0\r\n\r\n");
  EXPECT_TRUE(Has(seen, "transfer-encoding: chunked\r\n"));
  EXPECT_TRUE(seen.ends_with("\r\n\r\n3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n"));
  client.Send(kLast);
  EXPECT_TRUE(client.ReadToEnd().ends_with("0\r\n\r\n<end>"));
}

TEST(ServerTest, AnAbortedStreamHasNoEnd) {  // A9
  LoopbackServer server(Stream);
  for (const char* path : {"/abort", "/forget"}) {
    const std::string seen =
        Ask(server, "GET " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_TRUE(seen.ends_with("3\r\none\r\n3\r\ntwo\r\n<end>")) << seen;
  }
  const std::string old = Ask(server, "GET /abort HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(Has(old, "<reset>")) << "in HTTP/1.0 an end would be a proper one: " << old;
}

TEST(ServerTest, Http10GetsABodyThatEndsWithTheConnection) {
  LoopbackServer server(Stream);
  const std::string seen = Ask(server, "GET / HTTP/1.0\r\n\r\n");
  EXPECT_FALSE(Has(seen, "chunked"));
  EXPECT_TRUE(seen.ends_with("\r\n\r\nonetwothree<end>"));
}

TEST(ServerTest, HeadGetsNoBody) {
  LoopbackServer server(Mirror);
  RawSocket client(server.address());
  client.Send("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n" + std::string(kLast));
  const std::string seen = client.ReadToEnd();
  EXPECT_TRUE(Has(seen, "content-length: 9\r\n"));
  EXPECT_EQ(Times(seen, "HEAD /a 0"), 0u);
  EXPECT_TRUE(Has(seen, "GET /z 0"));
}

TEST(ServerTest, AHandlerWithoutAnAnswerIs500) {
  LoopbackServer server(Nothing);
  EXPECT_TRUE(Ask(server, kLast).starts_with("HTTP/1.1 500 "));
}

// A handler that waits for something else learns that its client has gone.
struct Gone {
  std::promise<void> promise;
  static Task<> Wait(std::shared_ptr<Gone> gone, Exchange& x) {
    Event event(x.loop());
    x.OnDisconnect([&event] { event.Notify(); });
    co_await event.Wait();
    gone->promise.set_value();
  }
};

TEST(ServerTest, TellsAWaitingHandlerThatTheClientLeft) {
  const auto gone = std::make_shared<Gone>();
  auto future = gone->promise.get_future();
  LoopbackServer server([gone](Exchange& x) { return Gone::Wait(gone, x); });
  RawSocket client(server.address());
  client.Send(kGet);
  EXPECT_EQ(future.wait_for(milliseconds(50)), std::future_status::timeout);
  client.Close();
  EXPECT_EQ(future.wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

struct Flood {
  std::atomic<uint64_t> written{0};
  std::promise<Code> end;
  static Task<> Write(std::shared_ptr<Flood> flood, Exchange& x) {
    ResponseHead head;
    x.WriteHead(std::move(head));
    const std::string block(1 << 20, 'x');
    for (int i = 0; i < 200; ++i) {
      const Status sent = co_await x.Write(block);
      if (!sent) {
        flood->end.set_value(sent.error().code);
        co_return;
      }
      flood->written += block.size();
    }
    flood->end.set_value(Code::kInternal);
  }
};

TEST(ServerTest, AClientThatDoesNotReadHoldsUpTheWriterAndIsCutInTheEnd) {  // A8, H7
  const auto flood = std::make_shared<Flood>();
  LoopbackServer server([flood](Exchange& x) { return Flood::Write(flood, x); },
                        {.write_stall = milliseconds(200)});
  const size_t before = ResidentBytes();
  RawSocket client(server.address(), 4096);
  client.Send(kGet);
  auto end = flood->end.get_future();
  ASSERT_EQ(end.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(end.get(), Code::kDeadlineExceeded);
  EXPECT_LT(flood->written, 20u << 20);
  EXPECT_LT(ResidentBytes(), before + (16u << 20));
}

TEST(ServerTest, MoreConnectionsThanAllowedWaitForTheirTurn) {
  LoopbackServer server(Mirror, {.connections_max = 1});
  RawSocket first(server.address());
  first.Send(kGet);
  first.ReadUntil("GET /a 0");
  RawSocket second(server.address());
  second.Send(kLast);
  EXPECT_EQ(second.ReadUntil("GET /z 0", 50), "<silence>");
  first.Close();
  EXPECT_TRUE(Has(second.ReadToEnd(), "GET /z 0"));
}

struct Drained {
  static Task<> Wait(Server& server, std::promise<void>& done) {
    co_await server.WaitDrained();
    done.set_value();
  }
};

TEST(ServerTest, DrainEndsIdleConnectionsAndServesTheLastOnes) {  // A23
  LoopbackServer server(Mirror);
  RawSocket idle(server.address()), busy(server.address());
  idle.Send(kGet);
  idle.ReadUntil("GET /a 0");
  busy.Send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n");
  while (server.connections() < 2) std::this_thread::yield();
  std::this_thread::sleep_for(milliseconds(20));  // the head has been read
  std::promise<void> done;
  server.OnLoop([&] {
    server.server().Drain();
    server.loop().Spawn(Drained::Wait(server.server(), done));
  });
  EXPECT_EQ(idle.ReadToEnd(), "<end>");
  RawSocket late(server.address());
  late.Send(kGet);
  EXPECT_TRUE(Has(late.ReadToEnd(), "connection: close\r\n"));
  busy.Send("ab");
  const std::string answer = busy.ReadToEnd();
  EXPECT_TRUE(Has(answer, "POST /x 2"));
  EXPECT_TRUE(Has(answer, "connection: close\r\n"));
  EXPECT_EQ(done.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  server.OnLoop([&] { server.server().CloseListener(); });
  EXPECT_FALSE(RawSocket(server.address()).open());
}

TEST(ServerTest, AHalfClosedClientStillGetsItsAnswer) {
  LoopbackServer server(Mirror);
  RawSocket client(server.address());
  client.Send(kGet);
  client.HalfClose();
  EXPECT_TRUE(Has(client.ReadToEnd(), "GET /a 0"));
}

TEST(ServerTest, SaysSoWhenThePortIsTaken) {
  LoopbackServer server(Mirror);
  const Status free = CheckPortFree(server.address());
  ASSERT_FALSE(free);
  EXPECT_EQ(free.error().code, Code::kUnavailable);
}

// A loop that ends takes its waiting coroutines with it: the sanitizers watch.
TEST(LoopTest, EndsWithConnectionsOpen) {
  const auto gone = std::make_shared<Gone>();
  LoopbackServer server([gone](Exchange& x) { return Gone::Wait(gone, x); });
  RawSocket client(server.address());
  client.Send(kGet);
  while (server.connections() < 1) std::this_thread::yield();
}

TEST(LoopTest, RunsWhatOtherThreadsPostInOrder) {
  Loop loop;
  std::vector<int> seen;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) loop.Post([&seen, i] { seen.push_back(i); });
    loop.Stop();
  });
  loop.Run();
  other.join();
  ASSERT_EQ(seen.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

}  // namespace
}  // namespace hidane::net
