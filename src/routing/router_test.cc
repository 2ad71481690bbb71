#include "routing/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <map>
#include <set>

#include "routing/policy.h"
#include "routing/routing_test_util.h"

namespace hidane::routing {
namespace {

using testing::ElementsAre;

// A router with `n` workers of `capacity` tokens and requests that end as the test says.
class Cluster {
 public:
  explicit Cluster(uint32_t n, uint64_t capacity = 1'000'000, const Params& params = {})
      : router(params) {
    for (uint32_t w = 0; w < n; ++w) router.PutWorker(TestWorker(w, capacity), now);
  }

  Decision Send(const prompt::Identity& prompt, std::optional<WorkerId> not_worker = {}) {
    auto decision = router.Route({.identity = prompt,
                                  .max_tokens = 50,
                                  .fingerprint = prompt.k2(),
                                  .not_worker = not_worker},
                                 now);
    EXPECT_TRUE(decision);
    router.OnDispatch(decision->ticket, now);
    return *decision;
  }
  void Answer(const Decision& d) {
    router.OnFirstByte(d.ticket, now);
    router.OnDone(d.ticket, End::kComplete, now);
  }
  // Sent and answered `latency_s` later.
  Decision Serve(const prompt::Identity& prompt, double latency_s = 0.1) {
    const Decision d = Send(prompt);
    now += FromSeconds(latency_s);
    Answer(d);
    return d;
  }
  void Kill(const Decision& d) {
    router.OnFault(d.ticket, Fault::kConnect, now);
    router.OnDone(d.ticket, End::kFault, now);
  }
  WorkerView View(WorkerId id) const {
    for (const WorkerView& v : router.Workers(now)) {
      if (v.id == id) return v;
    }
    return {};
  }

  Router router;
  TimePoint now = At(1);
};

prompt::Identity Tenant(uint64_t tenant, uint64_t own, uint32_t static_tokens = 6'400) {
  return TenantPrompt(tenant, static_tokens, Mix64(own), 64);
}

TEST(RouterTest, ATenantsRequestsGoHomeAndAreExpectedCached) {
  Cluster c(4);
  const Decision first = c.Serve(Tenant(1, 1));
  EXPECT_EQ(first.rule, Rule::kPlaced);
  EXPECT_EQ(first.expected_cached, 0u);
  const Decision second = c.Serve(Tenant(1, 2));
  EXPECT_EQ(second.worker, first.worker);
  EXPECT_EQ(second.rule, Rule::kHome);
  EXPECT_EQ(second.expected_cached, 6'400u);
  EXPECT_EQ(second.prompt_tokens, 6'464u);
  EXPECT_LT(second.ttft.prefill, first.ttft.prefill / 50);
}

// The demonstration: sixteen tenants, memory for four a worker, arriving all at once.
TEST(RouterTest, ABurstOfSixteenTenantsFillsFourWorkersEvenly) {
  constexpr uint32_t kStatic = 960;
  Cluster c(4, kStatic * 4 * 13 / 10 + 400);
  std::vector<Decision> decisions;
  for (uint64_t t = 0; t < 16; ++t) decisions.push_back(c.Send(Tenant(t, t, kStatic)));
  for (uint32_t w = 0; w < 4; ++w) EXPECT_EQ(c.View(WorkerId(w)).prefixes, 4u);
  for (const Decision& d : decisions) {
    c.now += FromSeconds(0.5);
    c.Answer(d);
  }
  for (uint64_t i = 0; i < 200; ++i) {
    const uint64_t t = i * 7 % 16;
    const Decision d = c.Serve(Tenant(t, 100 + i, kStatic));
    EXPECT_EQ(d.worker, decisions[t].worker);
    EXPECT_EQ(d.expected_cached, kStatic) << "request " << i;
  }
}

TEST(RouterTest, ModelsGoToTheirOwnWorkersAndUnknownOnesNowhere) {
  Router router;
  auto a = TestWorker(0, 1'000);
  a.model = "a";
  router.PutWorker(a, At(0));
  const auto for_a = MakePrompt({{1, 64}}, "a");
  const auto for_b = MakePrompt({{1, 64}}, "b");
  EXPECT_EQ(router.Route({.identity = for_a}, At(0))->rule, Rule::kOnly);
  const auto refused = router.Route({.identity = for_b}, At(0));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNotFound);
  EXPECT_EQ(refused.error().param, "model");
  router.PutWorker(TestWorker(1, 1'000), At(0));  // serves any
  EXPECT_EQ(router.Route({.identity = for_b}, At(0))->worker, WorkerId(1));
}

// Field case: affinity pins to a dead worker.
TEST(RouterTest, AfterAKillRequestsGoStraightElsewhereAndTheReturnedWorkerCountsAsEmpty) {
  Cluster c(2);
  const Decision home = c.Serve(Tenant(1, 1));
  const Decision hit = c.Send(Tenant(1, 2));
  ASSERT_EQ(hit.worker, home.worker);
  c.Kill(hit);
  const Decision again = c.Send(Tenant(1, 2), hit.worker);
  EXPECT_NE(again.worker, home.worker);
  EXPECT_EQ(again.rule, Rule::kFailover);
  c.Answer(again);
  const Decision next = c.Serve(Tenant(1, 3));
  EXPECT_EQ(next.worker, again.worker) << "no further request tries the dead one";
  EXPECT_EQ(c.View(home.worker).health, HealthState::kEjected);
  EXPECT_EQ(c.View(home.worker).indexed_tokens, 0u);

  c.router.OnProbe(home.worker, true, c.now);
  const Decision back = c.Serve(Tenant(1, 4));
  EXPECT_EQ(back.worker, home.worker) << "home again";
  EXPECT_EQ(back.expected_cached, 0u) << "and empty";
  EXPECT_EQ(c.View(home.worker).health, HealthState::kUp);
}

// Field case: a removal is not seen by every index.
TEST(RouterTest, ARemovedWorkerGetsNothingUnderAnyPolicy) {
  for (const std::string_view policy : Router::Policies()) {
    Cluster c(5);
    ASSERT_TRUE(c.router.SetPolicy(policy));
    std::map<uint64_t, WorkerId> before;
    for (uint64_t t = 0; t < 300; ++t) before[t] = c.Serve(Tenant(t, 1)).worker;
    c.router.RemoveWorker(WorkerId(1), c.now);
    int moved = 0;
    for (uint64_t t = 0; t < 300; ++t) {
      const Decision d = c.Serve(Tenant(t, 2));
      EXPECT_NE(d.worker, WorkerId(1));
      moved += before[t] != WorkerId(1) && d.worker != before[t];
    }
    const bool affine = policy == "prefix" || policy == "fixed_hash";
    EXPECT_TRUE(!affine || moved == 0) << policy;
  }
}

// Field case: state rebuilt per request, or by a reload that changes nothing.
TEST(RouterTest, ConversationsStayAlsoOverAReloadThatChangesNothing) {
  Cluster c(4);
  std::vector<std::vector<TestPart>> talks;
  std::map<size_t, WorkerId> at;
  for (uint64_t t = 0; t < 20; ++t) talks.push_back({{0, 0}, {Mix64(t), 512}});  // no static part
  for (int turn = 0; turn < 10; ++turn) {
    for (size_t i = 0; i < talks.size(); ++i) {
      const size_t t = i * 7 % talks.size();
      const Decision d = c.Serve(MakePrompt(talks[t]), 0);
      if (turn > 0) {
        EXPECT_EQ(d.worker, at[t]);
        EXPECT_EQ(d.rule, Rule::kSticky);
      }
      at[t] = d.worker;
      talks[t].push_back({Mix64(t * 100 + static_cast<uint64_t>(turn)), 256});
    }
    if (turn == 5) {
      for (uint32_t w = 0; w < 4; ++w) c.router.PutWorker(TestWorker(w, 1'000'000), c.now);
    }
  }
  std::set<WorkerId> used;
  for (const auto& [t, w] : at) used.insert(w);
  EXPECT_EQ(used.size(), 4u) << "new conversations spread";
}

// Field case: cold prefixes go to the busiest worker, because its tree is the smallest.
TEST(RouterTest, ColdPrefixesGoToTheIdleWorker) {
  for (const uint32_t static_tokens : {0u, 6'400u}) {
    Cluster c(2);
    c.router.DrainWorker(WorkerId(1), true, c.now);
    for (uint64_t i = 0; i < 50; ++i) c.Send(Tenant(1'000 + i, i));  // all on worker 0, unanswered
    c.router.DrainWorker(WorkerId(1), false, c.now);
    int to_idle = 0;
    for (uint64_t i = 0; i < 30; ++i) {
      to_idle += c.Send(Tenant(2'000 + i, i, static_tokens)).worker == WorkerId(1);
    }
    EXPECT_EQ(to_idle, 30) << static_tokens;
  }
}

TEST(RouterTest, FollowersOfAColdPrefixWaitForItsFirstByte) {
  Cluster c(2);
  const Decision leader = c.Send(Tenant(1, 1));
  const auto follower = c.router.Route({.identity = Tenant(1, 2)}, c.now);
  EXPECT_EQ(leader.flight, Flight::kLead);
  EXPECT_EQ(follower->flight, Flight::kFollow);
  EXPECT_GE(follower->wait_s, leader.ttft.total());
  EXPECT_EQ(follower->worker, leader.worker);
  c.now += FromSeconds(0.7);
  EXPECT_THAT(c.router.OnFirstByte(leader.ticket, c.now), ElementsAre(follower->ticket));
  EXPECT_EQ(c.Send(Tenant(1, 3)).flight, Flight::kGo);
}

TEST(RouterTest, AFailedLeaderHandsOverAndItsPrefixIsColdAgain) {
  Cluster c(1);
  const Decision leader = c.Send(Tenant(1, 1));
  const auto follower = c.router.Route({.identity = Tenant(1, 2)}, c.now);
  EXPECT_THAT(c.router.OnDone(leader.ticket, End::kAbandoned, c.now),
              ElementsAre(follower->ticket));
  EXPECT_NEAR(c.View(WorkerId(0)).wait_s, follower->ttft.prefill, 1e-9);
  c.router.OnDone(follower->ticket, End::kAbandoned, c.now);
  EXPECT_EQ(c.Send(Tenant(1, 3)).expected_cached, 0u);
}

TEST(RouterTest, RatesAndTokensPerByteAreLearnedFromAnswers) {
  Cluster c(1);
  for (uint64_t i = 0; i < 60; ++i) c.Serve(Tenant(i, i), 6'464 / 2'000.0);
  EXPECT_NEAR(c.View(WorkerId(0)).prefill_tokens_per_s, 2'000, 100);

  auto text = Tenant(100, 1);
  text.tokens = 0;  // a text prompt: only its bytes are known
  const Decision d = c.Send(text);
  EXPECT_EQ(d.prompt_tokens, 6'464u / 4);
  c.router.OnUsage(d.ticket, {.prompt_tokens = 6'464 / 2, .output_tokens = 10}, c.now);
  EXPECT_NEAR(c.router.tokens_per_byte("m"), 0.5, 0.05);
}

TEST(RouterTest, AWorkerWithoutSamplesIsAsFastAsItsPool) {
  Router router;
  for (uint32_t w = 0; w < 2; ++w) router.PutWorker(TestWorker(w, 1'000'000, 0), At(0));
  double t = 1;
  std::set<WorkerId> used;
  for (uint64_t i = 0; i < 40; ++i, t += 1) {  // short prompts, faster than assumed
    const auto d = router.Route({.identity = Tenant(i, i, 448)}, At(t));
    router.OnFirstByte(d->ticket, At(t + 0.005));
    router.OnDone(d->ticket, End::kComplete, At(t + 0.01));
    used.insert(d->worker);
  }
  EXPECT_EQ(used.size(), 2u) << "being measured first is no advantage";
}

TEST(RouterTest, RegretIsExpectedMinusActualAndTeachesTheIndex) {
  Cluster c(1);
  c.Serve(Tenant(1, 1));
  c.Serve(Tenant(2, 1));
  c.Serve(Tenant(3, 1));
  const Decision d = c.Send(Tenant(2, 2));
  c.router.OnFirstByte(d.ticket, c.now);
  const auto regret = c.router.OnUsage(
      d.ticket, {.prompt_tokens = 6'464, .output_tokens = 10, .cached_tokens = 0}, c.now);
  ASSERT_TRUE(regret);
  EXPECT_EQ(regret->cached_tokens, 6'400);
  c.router.OnDone(d.ticket, End::kComplete, c.now);
  EXPECT_TRUE(c.View(WorkerId(0)).feedback);
  EXPECT_EQ(c.Serve(Tenant(1, 3)).expected_cached, 0u) << "older than what was evicted";
  EXPECT_EQ(c.Serve(Tenant(3, 3)).expected_cached, 6'400u);
  EXPECT_EQ(c.Serve(Tenant(2, 3)).expected_cached, 6'400u) << "just computed anew";
}

TEST(RouterTest, ARestartedEngineIsEmptyAtOnce) {
  Cluster c(1);
  c.router.UpdateWorker(WorkerId(0), {.start_time_s = 100}, c.now);
  c.Serve(Tenant(1, 1));
  c.router.UpdateWorker(WorkerId(0), {.start_time_s = 100}, c.now);
  EXPECT_EQ(c.Serve(Tenant(1, 2)).expected_cached, 6'400u);
  c.router.UpdateWorker(WorkerId(0), {.start_time_s = 200}, c.now);
  EXPECT_EQ(c.Serve(Tenant(1, 3)).expected_cached, 0u);
}

TEST(RouterTest, CapacityIsTheEnginesWordUnlessTheOperatorGaveHis) {
  Router router;
  router.PutWorker(TestWorker(0, 0), At(0));
  router.PutWorker(TestWorker(1, 5'000), At(0));
  EXPECT_EQ(router.Workers(At(0))[0].kv_capacity_tokens, Params{}.kv_capacity_tokens);
  for (uint32_t w = 0; w < 2; ++w) {
    router.UpdateWorker(WorkerId(w), {.kv_capacity_tokens = 7'000}, At(0));
  }
  router.PutWorker(TestWorker(0, 0), At(1));  // a reload that changes nothing
  EXPECT_EQ(router.Workers(At(1))[0].kv_capacity_tokens, 7'000u);
  EXPECT_EQ(router.Workers(At(1))[1].kv_capacity_tokens, 5'000u);
}

TEST(RouterTest, WhenAllAreOutItSaysSo) {
  Cluster c(2);
  for (int i = 0; i < 2; ++i) c.Kill(c.Send(Tenant(1, 1)));
  const auto refused = c.router.Route({.identity = Tenant(1, 1)}, c.now);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
}

TEST(RouterTest, SilenceFarPastThePredictionEjectsButALongPrefillDoesNot) {
  Cluster c(4);
  const auto huge = TenantPrompt(1, 640'000, 1, 64);  // 64 s at the known rate
  const Decision d = c.Send(huge);
  c.now += FromSeconds(100);
  c.router.OnTick(c.now);
  EXPECT_EQ(c.View(d.worker).health, HealthState::kUp);
  c.now += FromSeconds(100);
  c.router.OnTick(c.now);
  EXPECT_EQ(c.View(d.worker).health, HealthState::kEjected);
}

TEST(RouterTest, APolicyOfTheOwnersOwnDecides) {
  struct Last final : Policy {
    std::string_view name() const override { return "last"; }
    Choice Choose(const Query&, WorkerSpan workers,
                  std::vector<Candidate>& considered) const override {
      considered.emplace_back().worker = workers.back()->spec.id;
      return {workers.back(), Rule::kPolicy};
    }
  };
  Router router;
  for (uint32_t w = 0; w < 3; ++w) router.PutWorker(TestWorker(w, 100'000), At(0));
  router.SetPolicy("last", [](const Params&) { return std::make_unique<Last>(); });
  EXPECT_EQ(router.policy(), "last");
  const prompt::Identity prompt = TenantPrompt(1, 1'000, 1, 100);
  const auto decision = router.Route({.identity = prompt}, At(1));
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->worker, WorkerId(2));
}

TEST(RouterTest, PoliciesSwitchWithoutARestart) {
  Cluster c(3);
  EXPECT_EQ(c.router.policy(), "prefix");
  const auto refused = c.router.SetPolicy("best");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().param, "policy");
  const Decision under_way = c.Send(Tenant(1, 1));
  ASSERT_TRUE(c.router.SetPolicy("round_robin"));
  std::vector<uint32_t> turns;
  for (uint64_t i = 0; i < 6; ++i) turns.push_back(c.Serve(Tenant(1, i)).worker.value());
  EXPECT_THAT(turns, ElementsAre(0, 1, 2, 0, 1, 2));
  c.Answer(under_way);
}

TEST(RouterTest, ADecisionPrintsItself) {
  Cluster c(2);
  std::string json;
  AppendJson(c.Send(Tenant(1, 1)), json);
  EXPECT_THAT(json, testing::HasSubstr(R"("rule":"placed")"));
  EXPECT_THAT(json, testing::HasSubstr(R"("candidates":[{"worker":)"));
}

TEST(RouterTest, ARequestWhoseWorkerWasRemovedEndsQuietly) {
  Cluster c(2);
  const Decision d = c.Send(Tenant(1, 1));
  c.router.RemoveWorker(d.worker, c.now);
  c.router.OnDispatch(d.ticket, c.now);
  EXPECT_TRUE(c.router.OnFirstByte(d.ticket, c.now).empty());
  c.router.OnProgress(d.ticket, c.now);
  EXPECT_FALSE(c.router.OnUsage(d.ticket, {}, c.now));
  c.router.OnFault(d.ticket, Fault::kReset, c.now);
  c.router.OnDone(d.ticket, End::kFault, c.now);
  EXPECT_EQ(c.Send(Tenant(1, 2)).rule, Rule::kOnly);
}

// Any mix of requests, ends, faults and membership changes leaves nothing behind.
RC_GTEST_PROP(RouterProperty, EveryRequestIsSettledOnceWhateverHappens, ()) {
  const auto steps = *rc::gen::container<std::vector<uint32_t>>(rc::gen::arbitrary<uint32_t>());
  Cluster c(4, 30'000);
  std::vector<Ticket> open;
  for (const uint32_t step : steps) {
    c.now += FromSeconds(0.05);
    const uint32_t arg = step >> 4;
    const auto some = [&] { return open[arg % open.size()]; };
    if (open.empty() || step % 16 < 6) {
      const auto prompt = Tenant(arg % 9, arg, 64 * (1 + arg % 60));
      if (const auto d = c.router.Route({.identity = prompt}, c.now)) open.push_back(d->ticket);
    } else if (step % 16 < 8) {
      c.router.OnDispatch(some(), c.now);
    } else if (step % 16 < 10) {
      c.router.OnFirstByte(some(), c.now);
    } else if (step % 16 < 13) {
      const Ticket t = some();
      if (step % 16 == 10) c.router.OnFault(t, static_cast<Fault>(arg % 4), c.now);
      c.router.OnDone(t, static_cast<End>(arg % 3), c.now);
      std::erase(open, t);
    } else if (step % 16 == 13) {
      c.router.OnUsage(some(), {.prompt_tokens = arg % 5'000, .cached_tokens = arg % 100}, c.now);
    } else if (step % 16 == 14) {
      c.router.RemoveWorker(WorkerId(arg % 4), c.now);
      c.router.PutWorker(TestWorker(arg % 4, 30'000), c.now);
    } else {
      c.router.OnProbe(WorkerId(arg % 4), arg % 8 != 0, c.now);
      c.router.OnTick(c.now);
    }
  }
  for (const Ticket t : open) c.router.OnDone(t, End::kComplete, c.now);
  for (const WorkerView& w : c.router.Workers(c.now)) {
    RC_ASSERT(w.in_flight == 0u);
    RC_ASSERT(w.wait_s == 0);
    RC_ASSERT(w.indexed_tokens <= w.kv_capacity_tokens);
  }
}

}  // namespace
}  // namespace hidane::routing
