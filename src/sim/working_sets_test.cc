#include "sim/working_sets.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/rng.h"
#include "sim/simulation.h"

namespace hidane::sim {
namespace {

using std::chrono::seconds;

constexpr admission::Params kExact{.fill = 1, .entry_fill = 1, .quantum_turns = 0};

/// A turn of a conversation: 100 tokens that all share, `own` of its own.
Request Turn(uint64_t id, uint64_t conversation, uint32_t own, uint32_t tenant = 0) {
  Request request;
  request.id = id;
  request.conversation = conversation;
  request.tenant = tenant;
  request.output_tokens = 10;
  request.prompt.chain = {1, Mix64(conversation)};
  request.prompt.ends = {100, 100 + own};
  request.prompt.tokens = 100 + own;
  request.prompt.k1_end = 1;
  request.prompt.k2_end = 2;
  return request;
}

bool Goes(const admission::Verdict& verdict) {
  return verdict.kind == admission::Verdict::Kind::kGo;
}

TEST(WorkingSetsTest, WhoDoesNotFitWaitsUntilAnotherIsGone) {
  WorkingSets sets(kExact, 1, 1'000);
  EXPECT_TRUE(Goes(sets.Arrive(Turn(1, 7, 500), seconds(0))));
  EXPECT_FALSE(Goes(sets.Arrive(Turn(2, 8, 500), seconds(0))));
  sets.Leave(1, seconds(1));
  EXPECT_TRUE(sets.TakeLetIn().empty()) << "its next turn is expected";
  EXPECT_TRUE(Goes(sets.Arrive(Turn(3, 7, 510), seconds(2))));
  sets.Leave(3, seconds(3));
  sets.Tick(seconds(600));
  EXPECT_EQ(sets.TakeLetIn(), std::vector<uint64_t>{2});
}

TEST(WorkingSetsTest, AClientThatGivesUpLeavesTheLine) {
  WorkingSets sets(kExact, 1, 1'000);
  sets.Arrive(Turn(1, 7, 500), seconds(0));
  sets.Arrive(Turn(2, 8, 800), seconds(0));
  EXPECT_FALSE(Goes(sets.Arrive(Turn(3, 9, 100), seconds(0))));
  sets.Leave(2, seconds(1));
  EXPECT_EQ(sets.TakeLetIn(), std::vector<uint64_t>{3});
}

TEST(WorkingSetsTest, EachGatewayOwnsAShareOfTheMemoryAndSomeConversations) {
  WorkingSets sets(kExact, 4, 4'000);
  uint32_t inside = 0;
  for (uint64_t c = 1; c <= 40; ++c) inside += Goes(sets.Arrive(Turn(c, c, 200), seconds(0)));
  EXPECT_EQ(inside, 16u) << "each owner: 100 shared, four times 200 own";
}

/// As Turn, after its history was rewritten.
Request Rewritten(uint64_t id, uint64_t conversation) {
  Request request = Turn(id, conversation, 500);
  request.prompt.chain[1] = Mix64(~conversation);
  return request;
}

TEST(WorkingSetsTest, WithoutSessionIdsARewrittenHistoryIsAnotherConversation) {
  WorkingSets sets(kExact, 1, 1'000);
  sets.Arrive(Turn(1, 7, 500), seconds(0));
  sets.Leave(1, seconds(1));
  EXPECT_FALSE(Goes(sets.Arrive(Rewritten(2, 7), seconds(2))));
  EXPECT_TRUE(sets.TakeLeft().empty());
}

TEST(WorkingSetsTest, WithSessionIdsItKeepsItsPlaceAndTheOldHistoryIsGivenAway) {
  WorkingSets sets(kExact, 1, 1'000, /*session_ids=*/true);
  const Request first = Turn(1, 7, 500);
  sets.Arrive(first, seconds(0));
  sets.Leave(1, seconds(1));
  EXPECT_TRUE(Goes(sets.Arrive(Rewritten(2, 7), seconds(2))));
  const auto left = sets.TakeLeft();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].k2, first.prompt.k2());
  EXPECT_EQ(left[0].gateway, 0u);
}

TEST(WorkingSetsTest, FairnessIsJainsIndexOverTenants) {
  WorkingSets sets(kExact, 1, 1'000);
  EXPECT_TRUE(std::isnan(sets.Fairness(seconds(1))));
  sets.Arrive(Turn(1, 7, 800, 1), seconds(0));
  sets.Arrive(Turn(2, 8, 800, 2), seconds(0));
  EXPECT_DOUBLE_EQ(sets.Fairness(seconds(10)), 0.5) << "one of two had all";
}

/// Conversations of three turns, 2 s between, each 1,000 tokens; all begin at once.
class Loop final : public Workload {
 public:
  explicit Loop(uint64_t conversations) : left_(conversations) {}
  std::string_view name() const override { return "loop"; }
  std::optional<Request> Next() override {
    if (left_ == 0) return std::nullopt;
    return Turn(0, left_--, 900);
  }
  std::optional<Request> After(const Finished& done, TimePoint now) override {
    if (++turns_[done.request.conversation] == 3) return std::nullopt;
    Request next = done.request;
    next.arrival = now + seconds(2);
    return next;
  }

 private:
  uint64_t left_;
  std::map<uint64_t, int> turns_;
};

TEST(SimulationTest, TheWaitInTheAdmissionLineStandsApartFromTheTimeToFirstToken) {
  sim::Setup setup;
  setup.engines.assign(1, {.gpu = *FindGpuSetup("8b-bf16-h100")});
  setup.engines[0].gpu.kv_capacity_tokens = 4'096;
  const auto run = [&setup] {
    Loop loop(12);
    return Simulate(setup, loop)->row;
  };
  const Row off = run();
  EXPECT_EQ(off.working_set, "off");
  EXPECT_EQ(off.admission_wait_mean_s, 0);
  setup.working_set = kExact;
  const Row on = run();
  EXPECT_EQ(on.working_set, "on");
  EXPECT_EQ(on.requests, 36);
  EXPECT_EQ(on.errors, 0);
  EXPECT_GT(on.admission_wait_p99_s, 10) << "places come free when conversations idle";
  EXPECT_LT(on.ttft_p99_s, 1);
  EXPECT_GT(on.ttft_with_wait_p99_s, 10);
  EXPECT_GT(on.hit_ratio, off.hit_ratio);
}

TEST(SimulationTest, TheOracleIsOneGateway) {
  sim::Setup setup;
  setup.engines.assign(2, {.gpu = *FindGpuSetup("8b-bf16-h100")});
  setup.policy = "oracle";
  Loop loop(4);
  const auto run = Simulate(setup, loop);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->row.policy, "oracle");
  EXPECT_EQ(run->row.errors, 0);
  setup.gateways = 2;
  EXPECT_EQ(Simulate(setup, loop).error().param, "gateways");
}

}  // namespace
}  // namespace hidane::sim
