#include "load/runner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "net/loop.h"
#include "net/server.h"
#include "net/sse.h"

namespace hidane::load {
namespace {

using net::Exchange;
using net::Task;

/// How the fake server answers the next requests.
enum class Play { kAnswer, kRefuse, kBreakOff, kErrorEvent, kPlainText };

/// An OpenAI-compatible server that says one word; on a thread of its own.
class FakeServer {
 public:
  explicit FakeServer(Play play = Play::kAnswer, int hold_until = 0)
      : play_(play), hold_until_(hold_until) {
    auto server = net::Server::Listen(loop_, *net::ParseListen("127.0.0.1:0"),
                                      [this](Exchange& exchange) { return Handle(exchange); }, {});
    if (!server) throw std::runtime_error(server.error().what);
    server_ = std::move(*server);
    thread_ = std::thread([this] { loop_.Run(); });
  }
  ~FakeServer() {
    loop_.Stop();
    thread_.join();
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", server_->port()); }
  int most_in_flight() const { return most_; }

 private:
  Task<> Handle(Exchange& exchange) {
    ++in_flight_;
    most_ = std::max(most_.load(), in_flight_.load());
    const auto body = co_await exchange.ReadBody(1 << 20);
    while (most_ < hold_until_) co_await loop_.SleepFor(std::chrono::milliseconds(1));
    net::ResponseHead head;
    if (play_ == Play::kRefuse) {
      head.status = 429;
      [[maybe_unused]] const Status sent =
          co_await exchange.Respond(std::move(head), R"({"error":{"message":"full"}})");
    } else if (play_ == Play::kPlainText) {
      [[maybe_unused]] const Status sent =
          co_await exchange.Respond(std::move(head), "data: what?\n\n");
    } else {
      head.headers.Add("content-type", "text/event-stream");
      head.headers.Add("x-hidane-worker", "w1");
      exchange.WriteHead(std::move(head));
      co_await Say(exchange);
    }
    --in_flight_;
  }

  Task<> Say(Exchange& exchange) {
    std::string text;
    net::AppendSse(text, R"({"choices":[{"delta":{"content":"hi"}}]})");
    [[maybe_unused]] const Status begun = co_await exchange.Write(text);
    if (play_ == Play::kBreakOff) {
      exchange.Abort();
      co_return;
    }
    text.clear();
    if (play_ == Play::kErrorEvent) {
      net::AppendSse(text, R"({"error":{"message":"engine died"}})");
    } else {
      net::AppendSse(text, R"({"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":1,
                               "prompt_tokens_details":{"cached_tokens":64}}})");
      net::AppendSse(text, "[DONE]");
    }
    [[maybe_unused]] const Status written = co_await exchange.Write(text);
    [[maybe_unused]] const Status sent = co_await exchange.Finish();
  }

  const Play play_;
  const int hold_until_;
  std::atomic<int> in_flight_ = 0, most_ = 0;
  net::Loop loop_;
  std::unique_ptr<net::Server> server_;
  std::thread thread_;
};

std::vector<Outcome> RunAgainst(const std::string& url, uint32_t requests, RunOptions options,
                                double rate = 0) {
  const WorkloadOptions wanted{
      .tenants = 2, .static_tokens = 50, .requests = requests, .rate = rate, .model = "m"};
  const Workload workload(wanted, 4.0);
  auto outcomes = Run({.url = url}, workload, MakePlan(wanted), options);
  EXPECT_TRUE(outcomes.has_value());
  return outcomes ? *outcomes : std::vector<Outcome>{};
}

TEST(Runner, ReadsUsageAndWorkerOfEachAnswer) {
  FakeServer server;
  const auto outcomes = RunAgainst(server.url(), 20, {.concurrency = 4});
  ASSERT_EQ(outcomes.size(), 20u);
  for (const Outcome& o : outcomes) {
    EXPECT_EQ(o.end, End::kOk) << o.detail;
    EXPECT_EQ(o.prompt_tokens, 100u);
    EXPECT_EQ(o.cached_tokens, 64u);
    EXPECT_EQ(o.worker, "w1");
    EXPECT_GE(o.first, o.sent);
    EXPECT_GE(o.done, o.last);
  }
}

TEST(Runner, ClosedLoopKeepsExactlyItsClientsBusy) {
  FakeServer server(Play::kAnswer, 3);  // answers nobody before three have come
  EXPECT_EQ(RunAgainst(server.url(), 12, {.concurrency = 3}).size(), 12u);
  EXPECT_EQ(server.most_in_flight(), 3);
}

TEST(Runner, OpenLoopSendsOnTimeThoughNobodyAnswers) {
  FakeServer server(Play::kAnswer, 8);
  const auto outcomes = RunAgainst(server.url(), 8, {.concurrency = 0}, 1000);
  ASSERT_EQ(outcomes.size(), 8u);
  for (const Outcome& o : outcomes) {
    EXPECT_TRUE(o.ok());
    EXPECT_GE(o.sent, o.intended);
  }
}

TEST(Runner, OpenLoopSaysWhenItIsTheLimit) {
  FakeServer server(Play::kAnswer, 2);
  const auto outcomes = RunAgainst(server.url(), 6, {.concurrency = 0, .in_flight_max = 2}, 1e6);
  EXPECT_EQ(std::count_if(outcomes.begin(), outcomes.end(),
                          [](const Outcome& o) { return o.end == End::kNotSent; }),
            4);
}

TEST(Runner, CountsEachErrorByItsKind) {
  const std::pair<Play, End> cases[] = {{Play::kRefuse, End::kHttp429},
                                        {Play::kBreakOff, End::kCut},
                                        {Play::kErrorEvent, End::kErrorEvent},
                                        {Play::kPlainText, End::kProtocol}};
  for (const auto& [play, end] : cases) {
    FakeServer server(play);
    for (const Outcome& o : RunAgainst(server.url(), 3, {.concurrency = 1})) {
      EXPECT_EQ(o.end, end) << Name(o.end) << " " << o.detail;
    }
  }
}

TEST(Runner, NobodyThereIsAConnectError) {
  std::string url;
  {
    FakeServer gone;
    url = gone.url();
  }
  for (const Outcome& o : RunAgainst(url, 2, {.concurrency = 1})) EXPECT_EQ(o.end, End::kConnect);
}

TEST(Runner, EndsEarlyWhenToldTo) {
  FakeServer server(Play::kAnswer, 100);  // never answers
  const RunOptions options{.concurrency = 2, .on_progress = [](const Progress&) { return false; }};
  const auto outcomes = RunAgainst(server.url(), 50, options);
  EXPECT_EQ(outcomes.size(), 2u);
  for (const Outcome& o : outcomes) EXPECT_FALSE(o.ok());
}

TEST(Runner, RefusesAUrlItCannotParse) {
  const Workload workload({.tenants = 1, .model = "m"}, 4.0);
  const auto outcomes = load::Run({.url = "ftp://x"}, workload, {}, {});
  ASSERT_FALSE(outcomes.has_value());
  EXPECT_EQ(outcomes.error().code, Code::kInvalidArgument);
}

TEST(Call, SaysWhoDoesNotAnswer) {
  std::string url;
  {
    FakeServer gone;
    url = gone.url();
  }
  const auto answer = Call({.url = url}, "GET", "/metrics");
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace hidane::load
