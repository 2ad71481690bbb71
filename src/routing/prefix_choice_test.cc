// The policy `prefix` as its users see it: where conversations go, and what Explain shows.
#include "routing/prefix_choice.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "routing/router.h"
#include "routing/routing_test_util.h"

namespace hidane::routing {
namespace {

constexpr uint32_t kStatic = 6'400;

class Fleet4 {
 public:
  static constexpr double kPause = 0.5;  // seconds before each request

  explicit Fleet4(uint32_t replica = 0) : router(Params{.replica = replica}) {
    for (uint32_t w = 0; w < 4; ++w) router.PutWorker(TestWorker(w, 100'000), now);
  }
  // One turn of conversation `talk`, whose prompt then has `history` tokens behind its first
  // message; answered at once.
  Decision Turn(uint64_t talk, uint32_t history, uint64_t prefix = 1) {
    Decision d = Send(Prompt(talk, history, prefix));
    router.OnFirstByte(d.ticket, now);
    router.OnDone(d.ticket, End::kComplete, now);
    return d;
  }
  Decision Send(const prompt::Identity& prompt) {
    now += FromSeconds(kPause);
    return *router.Route({.identity = prompt, .max_tokens = 50}, now);
  }
  static prompt::Identity Prompt(uint64_t talk, uint32_t history, uint64_t prefix) {
    std::vector<TestPart> parts{{prefix, kStatic}, {Mix64(talk), 64}};
    for (uint32_t at = 0; at < history; at += 640) parts.push_back({Mix64(talk * 1'000 + at), 640});
    return MakePrompt(parts);
  }
  // Until the next call `worker` alone takes requests.
  void Only(uint32_t worker) {
    for (const WorkerView& v : router.Workers(now)) {
      router.DrainWorker(v.id, v.id != WorkerId(worker), now);
    }
  }
  void All() {
    for (const WorkerView& v : router.Workers(now)) router.DrainWorker(v.id, false, now);
  }
  std::vector<uint64_t> Assigned() const {
    std::vector<uint64_t> tokens;
    for (const WorkerView& v : router.Workers(now)) tokens.push_back(v.assigned_tokens);
    return tokens;
  }

  Router router;
  TimePoint now = At(1);
};

TEST(PrefixChoiceTest, ConversationsStayUntilTheirWorkerIsFullAndMoveWhereThereIsRoom) {
  Fleet4 f;
  std::map<uint64_t, WorkerId> home;
  std::set<WorkerId> used;
  int moves = 0;
  for (uint32_t turn = 0; turn < 20; ++turn) {
    for (uint64_t talk = 0; talk < 12; ++talk) {
      const Decision d = f.Turn(talk, turn * 1'280);
      moves += turn > 0 && d.worker != home[talk];
      home[talk] = d.worker;
      used.insert(d.worker);
    }
  }
  EXPECT_EQ(used.size(), 4u) << "a prefix that all share is soon at home where there is room";
  EXPECT_LE(moves, 12) << "of 228 turns";
  // A turn that grows over the memory is seen at the next one.
  for (const uint64_t tokens : f.Assigned()) EXPECT_LE(tokens, 105'000u);
}

TEST(PrefixChoiceTest, AConversationWhoseHistoryIsGoneGoesWhereItEvictsLeast) {
  Fleet4 f;
  f.Only(0);
  for (uint32_t turn = 0; turn < 4; ++turn) {
    for (uint64_t talk = 1; talk <= 6; ++talk) f.Turn(talk, 12'800 + turn * 640);
  }
  f.All();
  EXPECT_EQ(f.Turn(1, 15'360).worker, WorkerId(0)) << "its history is there";
  f.router.ClearCache(WorkerId(0));
  const WorkerId next = f.Turn(1, 16'000).worker;
  EXPECT_NE(next, WorkerId(0)) << "more lives there than fits";
  EXPECT_EQ(f.Turn(1, 16'640).worker, next);
}

TEST(PrefixChoiceTest, WhereNoTurnIsExpectedTheMemoryIsGivenAway) {
  Fleet4 f;
  const Decision d = f.Turn(1, 12'800);
  f.Turn(1, 12'800);
  const uint64_t with = f.Assigned()[d.worker.value()];
  std::vector<TestPart> parts{{1, kStatic}, {Mix64(1), 64}};
  f.router.LeaveConversation("m", MakePrompt(parts).k2());
  EXPECT_EQ(f.Assigned()[d.worker.value()], with - 12'864);
}

TEST(PrefixChoiceTest, PromptsThatComeOnceTakeNoMemoryOfTheirOwn) {
  Fleet4 f;
  for (uint64_t talk = 0; talk < 200; ++talk) f.Turn(talk, 0);
  uint64_t sum = 0;
  for (const uint64_t tokens : f.Assigned()) sum += tokens;
  EXPECT_EQ(sum % kStatic, 0u) << "homes of the prefix, nothing else";
}

TEST(PrefixChoiceTest, AConversationWhoseWorkerIsLostSettlesElsewhereAndIsCountedThere) {
  Fleet4 f;
  for (uint32_t turn = 0; turn < 10; ++turn) f.Turn(1, turn * 640);
  const WorkerId lost = f.Turn(1, 6'400).worker;
  f.router.RemoveWorker(lost, f.now);
  const Decision d = f.Turn(1, 7'040);
  EXPECT_NE(d.worker, lost);
  EXPECT_EQ(f.Turn(1, 7'680).worker, d.worker);
  uint64_t sum = 0;
  for (const uint64_t tokens : f.Assigned()) sum += tokens;
  EXPECT_GE(sum, kStatic + 7'680u);
}

TEST(PrefixChoiceTest, AnOverfullWorkerKeepsTheConversationsWhoseHistoriesItHolds) {
  Fleet4 f;
  f.Only(0);
  for (uint64_t talk = 1; talk <= 7; ++talk) f.Turn(talk, 20'480);  // 147k tokens on 100k
  f.All();
  EXPECT_EQ(f.Turn(7, 21'120).worker, WorkerId(0));
  EXPECT_NE(f.Turn(1, 21'120).worker, WorkerId(0)) << "evicted, so it is computed anew anyway";
}

TEST(PrefixChoiceTest, ANewConversationSettlesWhereItsPrefixIsThoughOthersAreEmptier) {
  Fleet4 f;
  for (uint32_t w = 0; w < 4; ++w) {
    f.Only(w);
    const uint64_t prefix = 1 + w;
    for (uint64_t talk = 10 * w; talk < 10 * w + 4; ++talk) {
      f.Turn(talk, 6'400, prefix);
      if (w > 0) f.router.LeaveConversation("m", f.Prompt(talk, 6'400, prefix).k2());
    }
  }
  f.All();
  const auto assigned = f.Assigned();
  ASSERT_GT(assigned[0], assigned[1] + 10'000);
  const Decision d = f.Turn(99, 640, 1);
  EXPECT_EQ(d.worker, WorkerId(0));
  EXPECT_EQ(d.expected_cached, kStatic);
}

TEST(PrefixChoiceTest, OfManyHomesAFewAreCompared) {
  constexpr uint32_t kWorkers = 60;
  Fleet4 f;
  for (uint32_t w = 4; w < kWorkers; ++w) f.router.PutWorker(TestWorker(w, 100'000), f.now);
  for (uint32_t w = 0; w < kWorkers; ++w) {
    f.Only(w);
    f.Turn(w, 640 * (1 + w % 7));
  }
  f.All();
  EXPECT_LE(f.Turn(99, 640).candidates.size(), 2 * Params{}.compare_max);
}

TEST(PrefixChoiceTest, AWorkerThatCameBackEmptyIsWarmedAgainAndServes) {
  Fleet4 f;
  uint64_t n = 0;
  const auto serve = [&f, &n](WorkerId counted, int requests) {
    int there = 0;
    for (int i = 0; i < requests; ++i, ++n) {
      const auto prompt = MakePrompt({{1 + n % 8, 20'000}, {1'000 + n, 64}});
      f.now += FromSeconds(0.5);
      const Decision d = *f.router.Route({.identity = prompt, .max_tokens = 50}, f.now);
      f.router.OnFirstByte(d.ticket, f.now);
      f.router.OnDone(d.ticket, End::kComplete, f.now);
      there += d.worker == counted;
    }
    return there;
  };
  EXPECT_GT(serve(WorkerId(2), 400), 50) << "each prefix has two homes";
  f.router.ClearCache(WorkerId(2));
  EXPECT_GT(serve(WorkerId(2), 160), 20);
}

TEST(PrefixChoiceTest, WhatOtherGatewaysSentPushesHistoriesOutToo) {
  Fleet4 told(1);
  Fleet4 f(2);
  told.Only(0);
  for (uint64_t talk = 1; talk <= 7; ++talk) told.Turn(talk, 20'480);  // 147k tokens on 100k
  f.now = told.now;
  for (const Delta& delta : told.router.TakeDeltas()) f.router.Merge(delta, f.now);
  const Decision latest = f.Turn(7, 21'120);
  EXPECT_EQ(latest.worker, WorkerId(0));
  EXPECT_GE(latest.expected_cached, kStatic + 20'480) << "what another one sent is there";
  EXPECT_NE(f.Turn(1, 21'120).worker, WorkerId(0)) << "until others pushed it out";
}

TEST(PrefixChoiceTest, AmongEqualsTheOneThatComputedLeastOfLateIsChosen) {
  Fleet4 f;
  std::map<WorkerId, int> computed;
  for (uint64_t i = 0; i < 40; ++i) {
    const auto prompt = MakePrompt({{1'000 + i, 64}, {2'000 + i, 3'200}});
    f.now += FromSeconds(10);  // all are idle
    const Decision d = *f.router.Route({.identity = prompt}, f.now);
    f.router.OnFirstByte(d.ticket, f.now);
    f.router.OnDone(d.ticket, End::kComplete, f.now);
    ++computed[d.worker];
  }
  for (uint32_t w = 0; w < 4; ++w) EXPECT_NEAR(computed[WorkerId(w)], 10, 1);
}

// Of the work given to worker 0 before, after so many small requests in so much time.
double LeftOfPastWork(uint64_t requests, double seconds) {
  Fleet4 f;
  EXPECT_TRUE(f.router.SetPolicy("cost"));  // it compares all
  const auto given = [&f] {
    const auto any = MakePrompt({{1, 64}, {2, 64}});
    const Decision shown = *f.router.Explain({.identity = any}, f.now);
    for (const Candidate& c : shown.candidates) {
      if (c.worker == WorkerId(0)) return c.recent_prefill_s;
    }
    return 0.0;
  };
  f.Only(0);
  f.Send(MakePrompt({{3, 64}, {4, 60'000}}));
  f.All();
  const double before = given();
  for (uint64_t i = 0; i < requests; ++i) {
    f.now += FromSeconds(seconds / static_cast<double>(requests) - Fleet4::kPause);
    f.Send(MakePrompt({{5, 64}, {6 + i, 64}}));
  }
  return given() / before;
}

TEST(PrefixChoiceTest, WorkGivenOfLateFadesWithTimeButIsNotForgottenByAPause) {
  EXPECT_NEAR(LeftOfPastWork(100, 120), 0.5, 0.1);
  EXPECT_LT(LeftOfPastWork(500, 600), 0.1);
  EXPECT_GT(LeftOfPastWork(10, 36'000), 0.8) << "ten requests in ten hours";
}

/// A fleet where prefix 1 is at home everywhere, as another gateway told.
class Universal {
 public:
  static constexpr uint32_t kWorkers = 64;

  Universal() {
    for (uint32_t w = 0; w < kWorkers; ++w) router.PutWorker(TestWorker(w, 100'000), now);
    for (uint32_t w = 0; w < kWorkers; ++w) {
      router.Merge({.pool = Xxh3(""),
                    .key = Prompt(0).k1(),
                    .worker = TestWorkerKey(WorkerId(w)),
                    .stamp = {.epoch = w + 1, .replica = 7},
                    .tokens = kStatic,
                    .kind = w == 0 ? Delta::Kind::kPlace : Delta::Kind::kAddHome},
                   now);
    }
    now += FromSeconds(1'000);
  }
  static prompt::Identity Prompt(uint64_t own) { return TenantPrompt(1, kStatic, Mix64(own), 64); }
  Decision Send(uint64_t own) { return *router.Route({.identity = Prompt(own)}, now); }

  Router router{Params{}};
  TimePoint now = At(1);
};

TEST(PrefixChoiceTest, OfManyHomesSomeAreComparedAndAllServe) {
  Universal fleet;
  std::map<WorkerId, int> sent;
  for (uint64_t i = 0; i < 4 * Universal::kWorkers; ++i) {
    const Decision d = fleet.Send(i);
    EXPECT_LE(d.candidates.size(), 8u) << "each one is a read from cold memory";
    ++sent[d.worker];
  }
  EXPECT_EQ(sent.size(), Universal::kWorkers);
  for (const auto& [worker, requests] : sent) EXPECT_LE(requests, 6) << "4 on average";
}

TEST(PrefixChoiceTest, OfManyHomesTheOnlyOneThatTakesRequestsIsFound) {
  Universal fleet;
  for (uint32_t w = 0; w < Universal::kWorkers; ++w) {
    if (w != 37) fleet.router.DrainWorker(WorkerId(w), true, fleet.now);
  }
  for (uint64_t i = 0; i < 20; ++i) {
    const Decision d = fleet.Send(i);
    EXPECT_EQ(d.worker, WorkerId(37));
    EXPECT_EQ(d.rule, Rule::kBalance);
  }
}

TEST(PrefixChoiceTest, ExplainShowsTheDecisionAndChangesNothing) {
  Fleet4 f;
  for (uint64_t talk = 0; talk < 5; ++talk) f.Turn(talk, 640);
  const auto prompt = TenantPrompt(9, kStatic, 1, 64);
  const auto before = f.Assigned();
  const Decision shown = *f.router.Explain({.identity = prompt}, f.now);
  const Decision again = *f.router.Explain({.identity = prompt}, f.now);
  EXPECT_EQ(f.Assigned(), before);
  EXPECT_EQ(shown.worker, again.worker);
  const Decision made = *f.router.Route({.identity = prompt}, f.now);
  EXPECT_EQ(made.worker, shown.worker);
  EXPECT_EQ(made.rule, Rule::kPlaced);
  EXPECT_EQ(made.ttft.total(), shown.ttft.total());
  EXPECT_EQ(made.flight, shown.flight);
}

}  // namespace
}  // namespace hidane::routing
