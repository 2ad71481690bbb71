#include "net/client.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>

#include "net/loopback.h"

namespace hidane::net {
namespace {

using std::chrono::milliseconds;

/// What one call saw.
struct Seen {
  Failure failure = Failure::kNone;
  bool reused = false;
  int status = 0;
  std::string body;
  bool ended = false;
};

struct Plan {
  std::string method = "GET";
  std::vector<std::string> body;
  CallTimeouts timeouts;
  bool reuse = true;
  Duration abort_after{};
};

Task<> CallInto(ClientPool& pool, Address address, const Plan& plan, Seen& seen) {
  ClientStream stream(pool);
  Deadline abort(pool.loop(), [&stream] { stream.Abort(); });
  if (plan.abort_after > Duration(0)) abort.Arm(plan.abort_after);
  RequestHead head;
  head.method = plan.method;
  head.target = "/x";
  head.authority = "h";
  const std::vector<std::string_view> pieces(plan.body.begin(), plan.body.end());
  const Status sent =
      co_await stream.Send(address, std::move(head), pieces, plan.timeouts, plan.reuse);
  bool more = sent.has_value();
  if (more) {
    const auto answer = co_await stream.ReadHead();
    more = answer.has_value();
    if (more) seen.status = answer->status;
  }
  while (more) {
    const auto some = co_await stream.ReadSome();
    more = some && !some->empty();
    if (some) seen.body += *some;
    seen.ended = some && some->empty();
  }
  seen.failure = stream.failure();
  seen.reused = stream.reused();
  pool.loop().Stop();
}

/// A pool on a loop that runs for the length of each call.
class Caller {
 public:
  explicit Caller(ClientOptions options = {}) : pool_(loop_, options) {}
  Seen Call(const Address& address, const Plan& plan = {}) {
    Seen seen;
    loop_.Spawn(CallInto(pool_, address, plan, seen));
    loop_.Run();
    return seen;
  }
  void RunFor(Duration d) {
    Deadline stop(loop_, [this] { loop_.Stop(); });
    stop.Arm(d);
    loop_.Run();
  }
  ClientPool& pool() { return pool_; }

 private:
  Loop loop_;
  ClientPool pool_;
};

/// An upstream that does by hand, on a thread, what the test says.
class Upstreams {
 public:
  explicit Upstreams(std::function<void(RawListener&)> script)
      : thread_([this, script = std::move(script)] { script(listener_); }) {}
  ~Upstreams() { thread_.join(); }
  const Address& address() const { return listener_.address(); }

 private:
  RawListener listener_;
  std::thread thread_;
};

/// Answers one request on one connection with `bytes`, then closes.
Seen CallOnce(const std::string& bytes, const Plan& plan = {}, size_t* idle = nullptr) {
  Upstreams upstream([bytes](RawListener& listener) {
    RawSocket peer = listener.Accept();
    peer.ReadUntil("\r\n\r\n");
    peer.Send(bytes);
  });
  Caller caller;
  const Seen seen = caller.Call(upstream.address(), plan);
  if (idle != nullptr) *idle = caller.pool().idle();
  return seen;
}

TEST(ClientTest, ReadsEachKindOfBody) {
  for (const char* answer : {
           "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
           "HTTP/1.1 200 OK\r\n\r\nhello",
           "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
       }) {
    const Seen seen = CallOnce(answer);
    EXPECT_EQ(seen.status, 200) << answer;
    EXPECT_EQ(seen.body, "hello");
    EXPECT_TRUE(seen.ended);
    EXPECT_EQ(seen.failure, Failure::kNone);
  }
}

TEST(ClientTest, ACutAnswerIsNoEnd) {  // A9
  for (const char* answer : {
           "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello",
       }) {
    const Seen seen = CallOnce(answer);
    EXPECT_EQ(seen.body, "hello");
    EXPECT_FALSE(seen.ended);
    EXPECT_EQ(seen.failure, Failure::kCut);
  }
  EXPECT_EQ(CallOnce("HTTP/1.1 200 OK\r\nConte").failure, Failure::kCut);
}

TEST(ClientTest, TrustsNoAnswerThatCouldBeReadInTwoWays) {  // H12
  const std::string floods = [] {
    std::string all;
    for (int i = 0; i < 100; ++i) all += "HTTP/1.1 102 Processing\r\n\r\n";
    return all;
  }();
  for (const std::string& answer : {
           std::string(
               "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
           std::string("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
           std::string("HTTP/1.1 200 OK\nContent-Length: 1\n\na"),
           std::string("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
           "HTTP/1.1 200 OK\r\nX: " + std::string(100 << 10, 'x') + "\r\n\r\n",
           floods,
       }) {
    EXPECT_EQ(CallOnce(answer).failure, Failure::kProtocol) << answer.substr(0, 80);
  }
}

TEST(ClientTest, BytesBehindAnAnswerSpoilTheConnection) {  // H12
  size_t idle = 9;
  const Seen seen =
      CallOnce("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200", {}, &idle);
  EXPECT_EQ(seen.body, "ok");
  EXPECT_EQ(idle, 0u);
}

TEST(ClientTest, SendsOneContentLengthAndAllPieces) {  // A25
  std::promise<std::string> request;
  Upstreams upstream([&request](RawListener& listener) {
    RawSocket peer = listener.Accept();
    request.set_value(peer.ReadUntil("abcdef"));
    peer.Send("HTTP/1.1 204 No Content\r\n\r\n");
  });
  Plan plan{.method = "POST",
            .body = {"ab", "", "cd", "ef"},
            .timeouts = {},
            .reuse = true,
            .abort_after = {}};
  Caller caller;
  EXPECT_EQ(caller.Call(upstream.address(), plan).status, 204);
  EXPECT_EQ(request.get_future().get(),
            "POST /x HTTP/1.1\r\nhost: h\r\ncontent-length: 6\r\n\r\nabcdef");
}

TEST(ClientTest, SaysWhenThereWasNoConnection) {
  Address nobody;
  {
    RawListener listener;
    nobody = listener.address();
  }
  Caller caller;
  EXPECT_EQ(caller.Call(nobody).failure, Failure::kConnect);
}

TEST(ClientTest, AFreshConnectionThatDiesSilentlyIsNoAnswer) {
  EXPECT_EQ(CallOnce("").failure, Failure::kNoAnswer);
}

// A24: the upstream closes a kept connection just when the next request comes.
TEST(ClientTest, AReusedConnectionThatDiesSilentlyIsStale) {
  Upstreams upstream([](RawListener& listener) {
    RawSocket peer = listener.Accept();
    peer.ReadUntil("\r\n\r\n");
    peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    peer.ReadUntil("\r\n\r\n");
    peer.Close();
    RawSocket again = listener.Accept();
    again.ReadUntil("\r\n\r\n");
    again.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  Caller caller;
  EXPECT_EQ(caller.Call(upstream.address()).failure, Failure::kNone);
  EXPECT_EQ(caller.pool().idle(), 1u);
  const Seen stale = caller.Call(upstream.address());
  EXPECT_TRUE(stale.reused);
  EXPECT_EQ(stale.failure, Failure::kStale);
  Plan fresh;
  fresh.reuse = false;
  EXPECT_EQ(caller.Call(upstream.address(), fresh).body, "ok");
}

TEST(ClientTest, DropsIdleConnectionsThatEndOrGrowOld) {
  std::promise<void> close;
  Upstreams upstream([&close](RawListener& listener) {
    for (int i = 0; i < 2; ++i) {
      RawSocket peer = listener.Accept();
      peer.ReadUntil("\r\n\r\n");
      peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
      if (i == 1) peer.ReadToEnd();
      if (i == 0) close.get_future().get();
    }
  });
  Caller caller({.idle_max = milliseconds(100)});
  caller.Call(upstream.address());
  ASSERT_EQ(caller.pool().idle(), 1u);
  close.set_value();
  caller.RunFor(milliseconds(50));
  EXPECT_EQ(caller.pool().idle(), 0u) << "the upstream closed it";
  caller.Call(upstream.address());
  ASSERT_EQ(caller.pool().idle(), 1u);
  caller.RunFor(milliseconds(600));
  EXPECT_EQ(caller.pool().idle(), 0u) << "older than idle_max";
}

TEST(ClientTest, EachLimitEndsAsATimeout) {
  const auto silent = [](RawListener& listener) {
    RawSocket peer = listener.Accept();
    peer.ReadToEnd();
  };
  Plan plan;
  plan.timeouts.first_byte = milliseconds(50);
  {
    Upstreams upstream(silent);
    Caller caller;
    EXPECT_EQ(caller.Call(upstream.address(), plan).failure, Failure::kTimeout);
  }
  plan = {};
  plan.timeouts.read_stall = milliseconds(50);
  {
    Upstreams upstream([](RawListener& listener) {
      RawSocket peer = listener.Accept();
      peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
      peer.ReadToEnd();
    });
    Caller caller;
    const Seen seen = caller.Call(upstream.address(), plan);
    EXPECT_EQ(seen.failure, Failure::kTimeout);
    EXPECT_EQ(seen.body, "hello");
  }
  plan = {};
  plan.body = {std::string(64 << 20, 'x')};
  plan.timeouts.send_stall = milliseconds(50);
  {
    std::promise<void> over;
    Upstreams upstream([&over](RawListener& listener) {
      RawSocket peer = listener.Accept();
      over.get_future().get();
    });
    Caller caller;
    EXPECT_EQ(caller.Call(upstream.address(), plan).failure, Failure::kTimeout);
    over.set_value();
  }
}

TEST(ClientTest, AbortIsSeenByTheUpstreamAtOnce) {
  std::promise<std::string> seen_there;
  Upstreams upstream([&seen_there](RawListener& listener) {
    RawSocket peer = listener.Accept();
    peer.ReadUntil("\r\n\r\n");
    seen_there.set_value(peer.ReadToEnd());
  });
  Plan plan;
  plan.abort_after = milliseconds(30);
  Caller caller;
  EXPECT_EQ(caller.Call(upstream.address(), plan).failure, Failure::kAborted);
  EXPECT_EQ(seen_there.get_future().get(), "<end>");
}

TEST(ClientTest, AnAnswerBeforeTheBodyWasTakenIsRead) {
  std::promise<void> over;
  Upstreams upstream([&over](RawListener& listener) {
    RawSocket peer = listener.Accept();
    peer.ReadUntil("\r\n\r\n");
    peer.Send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    over.get_future().get();  // reads nothing
  });
  Plan plan{.method = "POST",
            .body = {std::string(64 << 20, 'x')},
            .timeouts = {},
            .reuse = true,
            .abort_after = {}};
  Caller caller;
  EXPECT_EQ(caller.Call(upstream.address(), plan).status, 413);
  EXPECT_EQ(caller.pool().idle(), 0u);
  over.set_value();
}

Task<> MirrorBody(Exchange& x) {
  const auto body = co_await x.ReadBody(64 << 20);
  ResponseHead head;
  if (!body) co_return;
  x.WriteHead(std::move(head));
  for (size_t at = 0; at < body->size(); at += 100'000) {
    static_cast<void>(co_await x.Write(body->view().substr(at, 100'000)));
  }
  static_cast<void>(co_await x.Finish());
}

TEST(FetchTest, CarriesLargeBodiesBothWaysAndReusesTheConnection) {
  LoopbackServer server(MirrorBody);
  Caller caller;
  std::string body;
  for (int i = 0; i < 3'000'000; ++i) body += static_cast<char>('a' + i % 23);
  Plan plan{.method = "POST", .body = {body}, .timeouts = {}, .reuse = true, .abort_after = {}};
  for (int i = 0; i < 3; ++i) {
    const Seen seen = caller.Call(server.address(), plan);
    EXPECT_TRUE(seen.body == body);
    EXPECT_EQ(seen.reused, i > 0);
  }
}

TEST(FetchTest, BlockingCallHasItsOwnLoop) {
  LoopbackServer server(MirrorBody);
  RequestHead head;
  head.method = "POST";
  head.target = "/";
  head.authority = "h";
  const auto second = std::chrono::seconds(1);
  const auto result = FetchBlocking(server.address(), head, "hello", 1000, 10 * second);
  ASSERT_TRUE(result) << result.error().what;
  EXPECT_EQ(result->body.view(), "hello");
  const auto large = FetchBlocking(server.address(), head, "hello", 3, 10 * second);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Code::kTooLarge);
}

}  // namespace
}  // namespace hidane::net
