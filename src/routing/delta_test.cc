// Gateways that tell each other their deltas have the same tables.
#include "routing/delta_log.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <algorithm>
#include <tuple>

#include "routing/routing_test_util.h"

namespace hidane::routing {
namespace {

constexpr uint32_t kWorkers = 5;

std::unique_ptr<Router> MakeGateway(uint32_t replica, uint32_t workers = kWorkers) {
  auto router = std::make_unique<Router>(Params{.replica = replica});
  for (uint32_t w = 0; w < workers; ++w) router->PutWorker(TestWorker(w, 60'000), At(0));
  return router;
}

// A conversation of a tenant, at its `turn`; everything of one size.
prompt::Identity Talk(uint64_t tenant, uint64_t talk, uint32_t turn) {
  std::vector<TestPart> parts{{1'000 * tenant, 6'400}, {Mix64(talk), 64}};
  for (uint32_t t = 0; t < turn; ++t) parts.push_back({Mix64(talk * 100 + t), 640});
  return MakePrompt(parts);
}

void Serve(Router& router, const prompt::Identity& prompt, TimePoint now) {
  const auto d = router.Route({.identity = prompt, .max_tokens = 1}, now);
  router.OnFirstByte(d->ticket, now);
  router.OnDone(d->ticket, End::kComplete, now);
}

auto Key(const Delta& d) {
  return std::tuple(d.kind, d.key, d.worker, d.k1, d.stamp, d.tokens);
}

// Everything that is shared, in one order.
std::vector<Delta> State(const Router& router) {
  std::vector<Delta> all = router.Snapshot();
  std::ranges::sort(all, {}, Key);
  return all;
}

std::vector<uint64_t> Assigned(const Router& router) {
  std::vector<uint64_t> tokens;
  for (const WorkerView& v : router.Workers(At(0))) tokens.push_back(v.assigned_tokens);
  return tokens;
}

// Three gateways with traffic of their own, members that leave and come, and nobody told.
std::vector<Delta> SomeDeltas(uint64_t seed) {
  Rng rng(seed);
  std::vector<Delta> all;
  for (uint32_t replica = 0; replica < 3; ++replica) {
    const auto router = MakeGateway(replica);
    for (int i = 0; i < 60; ++i) {
      const TimePoint now = At(i * 0.5);
      Serve(*router, Talk(rng.Below(12), rng.Below(6), static_cast<uint32_t>(rng.Below(4))), now);
      if (rng.Below(20) == 0) {
        const auto w = static_cast<uint32_t>(rng.Below(kWorkers));
        router->RemoveWorker(WorkerId(w), now);
        router->PutWorker(TestWorker(w, 60'000), now);
      }
    }
    for (const Delta& d : router->TakeDeltas()) all.push_back(d);
  }
  return all;
}

void Shuffle(std::vector<Delta>& deltas, Rng& rng) {
  for (size_t i = deltas.size(); i > 1; --i) std::swap(deltas[i - 1], deltas[rng.Below(i)]);
}

RC_GTEST_PROP(DeltaProperty, AnyOrderAndAnyRepetitionGiveTheSameTable, ()) {
  const uint64_t seed = *rc::gen::arbitrary<uint64_t>();
  Rng rng(seed);
  std::vector<Delta> deltas = SomeDeltas(seed);
  const auto a = MakeGateway(7);
  for (const Delta& d : deltas) a->Merge(d, At(1));

  const size_t repeated = deltas.size() / 2;
  for (size_t i = 0; i < repeated; ++i) deltas.push_back(deltas[rng.Below(deltas.size())]);
  Shuffle(deltas, rng);
  const auto b = MakeGateway(8, 2);  // the other workers join while the deltas come in
  uint32_t joined = 2;
  for (size_t i = 0; i < deltas.size(); ++i) {
    b->Merge(deltas[i], At(1));
    if (i % 20 == 19 && joined < kWorkers) b->PutWorker(TestWorker(joined++, 60'000), At(1));
  }
  while (joined < kWorkers) b->PutWorker(TestWorker(joined++, 60'000), At(1));
  // A worker that joins takes its part of what is there, which is a write of its own.
  const std::vector<Delta> own = b->TakeDeltas();
  for (const Delta& d : own) a->Merge(d, At(1));
  RC_ASSERT(State(*a) == State(*b));
  RC_ASSERT(Assigned(*a) == Assigned(*b));
}

TEST(DeltaTest, ASnapshotRebuildsTheTable) {
  const auto a = MakeGateway(0);
  for (uint64_t i = 0; i < 200; ++i) {
    Serve(*a, Talk(i % 9, i % 30, static_cast<uint32_t>(i / 30)), At(static_cast<double>(i) * 0.1));
  }
  const auto b = MakeGateway(1);
  for (const Delta& d : a->Snapshot()) b->Merge(d, At(20));
  EXPECT_EQ(State(*a), State(*b));
}

TEST(DeltaTest, AGatewayThatWasToldSendsAPrefixAndAConversationHome) {
  const auto a = MakeGateway(0);
  const auto b = MakeGateway(1);
  for (uint64_t tenant = 0; tenant < 20; ++tenant) {
    for (uint32_t turn = 0; turn < 3; ++turn) Serve(*a, Talk(tenant, tenant, turn), At(1));
  }
  for (const Delta& d : a->TakeDeltas()) b->Merge(d, At(2));
  for (uint64_t tenant = 0; tenant < 20; ++tenant) {
    const auto prompt = Talk(tenant, tenant, 3);
    EXPECT_EQ(b->Route({.identity = prompt}, At(3))->worker,
              a->Route({.identity = prompt}, At(3))->worker);
  }
}

// However a gateway learns that an engine's cache is empty.
void Restart(Router& router, WorkerId id) {
  router.UpdateWorker(id, {.start_time_s = 200}, At(3));
}
void Clear(Router& router, WorkerId id) {
  router.ClearCache(id);
}
void TellCleared(Router& router, WorkerId id) {
  const KvEvent cleared{.kind = KvEvent::Kind::kCleared};
  router.OnKvEvents(id, {&cleared, 1});
}
void FailProbes(Router& router, WorkerId id) {
  for (int i = 0; i < 10; ++i) router.OnProbe(id, false, At(3));
  for (int i = 0; i < 10; ++i) router.OnProbe(id, true, At(3));
}

TEST(DeltaTest, WhatOthersLeftInAnEngineIsGoneWithItsCache) {
  for (const auto& empty : {Restart, Clear, TellCleared, FailProbes}) {
    const auto a = MakeGateway(0);
    const auto b = MakeGateway(1);
    const auto tell = [&] {
      for (const Delta& d : a->TakeDeltas()) b->Merge(d, At(2));
    };
    const auto expected = [&](const prompt::Identity& prompt) {
      return b->Explain({.identity = prompt}, At(4))->expected_cached;
    };
    for (uint32_t turn = 0; turn < 3; ++turn) Serve(*a, Talk(1, 1, turn), At(1));
    tell();
    const WorkerId home = b->Explain({.identity = Talk(1, 1, 3)}, At(4))->worker;
    b->UpdateWorker(home, {.start_time_s = 100}, At(3));
    EXPECT_GE(expected(Talk(1, 1, 3)), 6'400u + 640u);
    EXPECT_EQ(expected(Talk(1, 2, 0)), 6'400u);

    empty(*b, home);
    EXPECT_EQ(expected(Talk(1, 1, 3)), 0u);
    EXPECT_EQ(expected(Talk(1, 2, 0)), 0u);

    Serve(*a, Talk(1, 1, 3), At(1));
    tell();
    EXPECT_GE(expected(Talk(1, 1, 4)), 6'400u + 640u) << "computed anew by the other's turn";
  }
}

TEST(DeltaTest, WhoComputesAPrefixAnewAfterARestartTellsOnce) {
  const auto a = MakeGateway(0);
  const auto b = MakeGateway(1);
  Serve(*a, Talk(1, 1, 0), At(1));
  for (const Delta& d : a->TakeDeltas()) b->Merge(d, At(2));
  const auto prompt = Talk(1, 2, 0);
  const WorkerId home = b->Explain({.identity = prompt}, At(4))->worker;
  const Delta place = State(*b).front();
  for (Router* const router : {a.get(), b.get()}) Clear(*router, home);
  Serve(*a, Talk(1, 3, 0), At(4));
  for (const Delta& d : a->TakeDeltas()) b->Merge(d, At(5));
  EXPECT_EQ(b->Explain({.identity = prompt}, At(6))->expected_cached, 6'400u);
  Serve(*a, Talk(1, 4, 0), At(6));
  for (const Delta& d : a->TakeDeltas()) EXPECT_NE(d.worker, place.worker);
}

TEST(DeltaTest, OfTwoFirstSightsAtOnceTheHigherReplicaWinsEverywhere) {
  const auto a = MakeGateway(0);
  const auto b = MakeGateway(1);
  Serve(*a, Talk(100, 0, 0), At(1));  // so that the two choose differently
  (void)a->TakeDeltas();
  Serve(*b, Talk(1, 1, 0), At(1));
  a->DrainWorker(b->Route({.identity = Talk(1, 1, 0)}, At(1))->worker, true, At(1));
  Serve(*a, Talk(1, 1, 0), At(1));
  a->DrainWorker(b->Route({.identity = Talk(1, 1, 0)}, At(1))->worker, false, At(1));
  const auto from_a = a->TakeDeltas();
  const auto from_b = b->TakeDeltas();
  ASSERT_EQ(from_a.size(), 1u);
  ASSERT_EQ(from_b.size(), 1u);
  ASSERT_NE(from_a[0].worker, from_b[0].worker);
  a->Merge(from_b[0], At(2));
  b->Merge(from_a[0], At(2));
  const bool a_is_later = from_a[0].stamp > from_b[0].stamp;
  for (const auto& router : {a.get(), b.get()}) {
    const auto state = State(*router);
    const auto at = std::ranges::find(state, from_a[0].key, &Delta::key);
    EXPECT_EQ(at->worker, a_is_later ? from_a[0].worker : from_b[0].worker);
  }
}

TEST(DeltaTest, TellingIsRareOnceEverythingIsAtHome) {
  const auto a = MakeGateway(0);
  for (uint64_t tenant = 0; tenant < 20; ++tenant) Serve(*a, Talk(tenant, 0, 0), At(0));
  (void)a->TakeDeltas();
  for (int i = 0; i < 1'000; ++i) {
    Serve(*a, Talk(static_cast<uint64_t>(i) % 20, static_cast<uint64_t>(i), 0), At(i * 0.01));
  }
  EXPECT_LE(a->TakeDeltas().size(), 20u);
}

TEST(DeltaTest, UsesMakeWayForChangesOfHome) {
  DeltaLog log(0);
  log.Push({.key = 7, .stamp = log.Next()});
  for (int i = 0; i < 200'000; ++i) log.PushUse(1, 2, 3);
  const auto taken = log.Take();
  EXPECT_LE(taken.size(), 65'536u);
  EXPECT_EQ(taken.front().key, 7u);
  EXPECT_EQ(taken.front().kind, Delta::Kind::kPlace);
}

TEST(DeltaTest, UntakenDeltasAreBounded) {
  DeltaLog log(0);
  for (int i = 0; i < 200'000; ++i) log.Push({.stamp = log.Next()});
  const auto taken = log.Take();
  EXPECT_LE(taken.size(), 65'536u);
  EXPECT_EQ(taken.back().stamp.epoch, 200'000u) << "the newest stay";
}

}  // namespace
}  // namespace hidane::routing
