#include "sim/retrying_clients.h"

#include <gtest/gtest.h>

namespace hidane::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// One client that goes on after each answer, for ever.
class OneClient final : public Workload {
 public:
  explicit OneClient(std::vector<bool>& heard) : heard_(heard) {}
  std::string_view name() const override { return "one"; }
  std::optional<Request> Next() override {
    if (std::exchange(begun_, true)) return std::nullopt;
    Request request;
    request.tenant = 7;
    return request;
  }
  std::optional<Request> After(const Finished& done, TimePoint now) override {
    heard_.push_back(done.ok);
    Request request;
    request.arrival = now;
    return request;
  }

 private:
  bool begun_ = false;
  std::vector<bool>& heard_;
};

TEST(RetryingClients, TriesThreeTimesWithGrowingDelaysAndThenGoesOn) {
  std::vector<bool> heard;
  RetryingClients clients(std::make_unique<OneClient>(heard), {.seed = 3});
  Request request = *clients.Next();
  EXPECT_EQ(request.patience, seconds(5));
  TimePoint now = seconds(5);
  for (const Duration delay : {milliseconds(500), milliseconds(1000)}) {
    const auto again = clients.After({.request = request, .ok = false}, now);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->attempt, request.attempt + 1);
    EXPECT_EQ(again->tenant, 7u);
    EXPECT_GE(again->arrival, now + delay * 3 / 4);
    EXPECT_LE(again->arrival, now + delay);
    EXPECT_EQ(again->waited, again->arrival);  // since the first was sent, at 0
    now = again->arrival + seconds(5);
    request = *again;
  }
  EXPECT_TRUE(heard.empty());
  const auto next = clients.After({.request = request, .ok = false}, now);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->attempt, 0u);
  EXPECT_EQ(next->patience, seconds(5));
  EXPECT_EQ(heard, std::vector<bool>{false});
}

TEST(RetryingClients, AnAnswerIsNotTriedAgain) {
  std::vector<bool> heard;
  RetryingClients clients(std::make_unique<OneClient>(heard), {});
  const Request request = *clients.Next();
  EXPECT_EQ(clients.After({.request = request, .ok = true}, seconds(1))->attempt, 0u);
  EXPECT_EQ(heard, std::vector<bool>{true});
}

TEST(RetryingClients, APromiseIsKept) {
  std::vector<bool> heard;
  RetryingClients clients(std::make_unique<OneClient>(heard), {});
  Request request = *clients.Next();
  const auto again =
      clients.After({.request = request, .ok = false, .retry_after = seconds(7)}, seconds(1));
  EXPECT_EQ(again->arrival, seconds(8));
  clients.After({.request = *again, .ok = true}, seconds(9));
  EXPECT_EQ(clients.AskedIn(0, 1).requests, 1u);
  EXPECT_EQ(clients.AskedIn(0, 1).answered, 1u) << "by the retry";
  EXPECT_EQ(clients.AskedIn(0, 100).requests, 2u);
}

TEST(RetryingClients, DelaysEndAtTheirMaximum) {
  std::vector<bool> heard;
  RetryingClients clients(std::make_unique<OneClient>(heard), {.retries = 100, .jitter = 0});
  Request request = *clients.Next();
  for (int i = 0; i < 100; ++i) {
    const auto again = clients.After({.request = request, .ok = false}, seconds(0));
    ASSERT_TRUE(again);
    EXPECT_LE(again->arrival, seconds(8));
    request = *again;
  }
  EXPECT_EQ(request.arrival, seconds(8));
}

}  // namespace
}  // namespace hidane::sim
