#include "routing/kv_event.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <set>

#include "routing/routing_test_util.h"

namespace hidane::routing {
namespace {

constexpr uint32_t kB = kTestBlockTokens;
using Kind = KvEvent::Kind;

void Publish(CacheIndex& index, const KvEvent& event) {
  Apply({&event, 1}, index);
}

TEST(KvEventTest, ARemovedBlockAndWhatFollowsAreNotBelieved) {
  CacheIndex index(100'000);
  const auto a = MakePrompt({{1, 10 * kB}, {2, 3 * kB}});
  const auto b = MakePrompt({{1, 10 * kB}, {3, 5 * kB}});
  index.Insert(a, 1, At(1));
  index.Insert(b, 1, At(2));
  Publish(index, {.kind = Kind::kRemoved, .blocks = std::span(a.chain).subspan(11, 1)});
  EXPECT_EQ(index.Find(a).blocks, 11u);
  EXPECT_EQ(index.Find(b).blocks, 15u);
  EXPECT_EQ(index.blocks(), 16u);
  Publish(index, {.kind = Kind::kRemoved, .blocks = std::span(a.chain).subspan(4, 1)});
  EXPECT_EQ(index.Find(a).blocks, 4u);
  EXPECT_EQ(index.Find(b).blocks, 4u);
  Publish(index, {.kind = Kind::kRemoved, .blocks = std::span(a.chain).first(1)});
  EXPECT_EQ(index.Find(a).blocks, 0u);
}

TEST(KvEventTest, TokensLeaveWithTheirBlocks) {
  CacheIndex index(100'000);
  const auto a = MakePrompt({{1, 10 * kB}});
  index.Insert(a, 1, At(1));
  Publish(index, {.kind = Kind::kRemoved, .blocks = std::span(a.chain).subspan(6)});
  EXPECT_EQ(index.tokens(), 6 * kB);
  index.Insert(a, 1, At(2));
  EXPECT_EQ(index.tokens(), 10 * kB);
  EXPECT_EQ(index.Find(a).blocks, 10u);
}

TEST(KvEventTest, ClearedEmptiesAndKeepsTheBound) {
  CacheIndex index(10 * kB);
  index.Insert(MakePrompt({{1, 8 * kB}}), 1, At(1));
  Publish(index, {.kind = Kind::kCleared});
  EXPECT_EQ(index.blocks(), 0u);
  index.Insert(MakePrompt({{2, 20 * kB}}), 1, At(2));
  EXPECT_EQ(index.tokens(), 10 * kB);
}

TEST(KvEventTest, ABatchClearsAndRemovesInOnePass) {
  CacheIndex index(100'000);
  const auto a = MakePrompt({{1, 10 * kB}});
  const auto b = MakePrompt({{2, 10 * kB}});
  index.Insert(a, 1, At(1));
  index.Insert(b, 1, At(2));
  const KvEvent removals[] = {
      {.kind = Kind::kRemoved, .blocks = std::span(a.chain).last(1)},
      {.kind = Kind::kRemoved, .blocks = std::span(b.chain).last(3)},
  };
  Apply(removals, index);
  EXPECT_EQ(index.Find(a).blocks, 9u);
  EXPECT_EQ(index.Find(b).blocks, 7u);
  const KvEvent mixed[] = {removals[0], {.kind = Kind::kCleared}, removals[1]};
  Apply(mixed, index);
  EXPECT_EQ(index.blocks(), 0u);
}

TEST(KvEventTest, StoredAndUnknownBlocksChangeNothing) {
  CacheIndex index(100'000);
  const auto a = MakePrompt({{1, 10 * kB}});
  const auto other = MakePrompt({{2, 10 * kB}});
  index.Insert(a, 1, At(1));
  Publish(index, {.kind = Kind::kStored, .blocks = a.chain, .block_tokens = kB});
  Publish(index, {.kind = Kind::kStored, .blocks = other.chain, .block_tokens = kB});
  Publish(index, {.kind = Kind::kRemoved, .blocks = other.chain});
  EXPECT_EQ(index.Find(a).blocks, 10u);
  EXPECT_EQ(index.Find(other).blocks, 0u);
}

TEST(KvEventTest, OtherTiersAreNotLookedAt) {
  CacheIndex index(100'000);
  const auto a = MakePrompt({{1, 10 * kB}});
  index.Insert(a, 1, At(1));
  Publish(index, {.kind = Kind::kRemoved, .blocks = a.chain, .medium = "CPU"});
  EXPECT_EQ(index.Find(a).blocks, 10u);
  Publish(index, {.kind = Kind::kRemoved, .blocks = a.chain, .medium = "GPU"});
  EXPECT_EQ(index.Find(a).blocks, 0u);
}

TEST(KvEventTest, ARouterBelievesEventsOfTheirWorkerOnly) {
  Router router;
  router.PutWorker(TestWorker(1, 100'000), At(0));
  const auto prompt = TenantPrompt(1, 4'096, 7, 256);
  const Decision first = *router.Route({.identity = prompt}, At(1));
  router.OnFirstByte(first.ticket, At(2));
  router.OnDone(first.ticket, End::kComplete, At(3));
  const KvEvent removed{.kind = Kind::kRemoved, .blocks = std::span(prompt.chain).subspan(8, 1)};
  router.OnKvEvents(WorkerId(2), {&removed, 1});  // nobody
  EXPECT_EQ(router.Explain({.identity = prompt}, At(4))->expected_cached, 4'352u);
  router.OnKvEvents(WorkerId(1), {&removed, 1});
  EXPECT_EQ(router.Explain({.identity = prompt}, At(4))->expected_cached, 8 * kB);
}

// The model: the set of blocks that were inserted and not removed since.
size_t Reach(const std::set<uint64_t>& held, const prompt::Identity& p) {
  size_t n = 0;
  while (n < p.size() && held.contains(p.chain[n])) ++n;
  return n;
}

std::vector<TestPart> AnyParts() {
  const auto part = rc::gen::construct<TestPart>(
      rc::gen::map(rc::gen::inRange<uint64_t>(0, 3), [](uint64_t s) { return 100'000 * s; }),
      rc::gen::map(rc::gen::inRange<uint32_t>(1, 6), [](uint32_t n) { return n * kB; }));
  return *rc::gen::nonEmpty(rc::gen::container<std::vector<TestPart>>(part));
}

RC_GTEST_PROP(KvEventProperty, AgreesWithASetOfBlocksUnderAnyMixOfPromptsAndEvents, ()) {
  const uint64_t capacity = *rc::gen::inRange<uint64_t>(1, 200) * kB;
  CacheIndex index(capacity);
  uint64_t inserted = 0;  // up to `capacity` nothing can have been trimmed
  std::set<uint64_t> held;
  std::vector<prompt::Identity> seen;
  const int steps = *rc::gen::inRange(1, 30);
  for (int step = 1; step <= steps; ++step) {
    const int action = *rc::gen::inRange(0, 10);
    if (action < 5 || seen.empty()) {
      seen.push_back(MakePrompt(AnyParts()));
      index.Insert(seen.back(), 1, At(step));
      inserted += seen.back().bytes();
      held.insert(seen.back().chain.begin(), seen.back().chain.end());
    } else if (action < 9) {
      const auto& p = seen[*rc::gen::inRange<size_t>(0, seen.size())];
      const auto from = *rc::gen::inRange<size_t>(0, p.size());
      const auto count = *rc::gen::inRange<size_t>(1, p.size() - from + 1);
      const auto blocks = std::span(p.chain).subspan(from, count);
      Publish(index, {.kind = Kind::kRemoved, .blocks = blocks});
      for (const uint64_t block : blocks) held.erase(block);
    } else {
      Publish(index, {.kind = Kind::kCleared});
      held.clear();
    }
    for (const auto& p : seen) RC_ASSERT(index.Find(p).blocks <= Reach(held, p));
    const bool untrimmed = inserted <= capacity;
    RC_ASSERT(!untrimmed || index.Find(seen.back()).blocks == Reach(held, seen.back()));
    RC_ASSERT(index.tokens() <= capacity);
  }
  for (const auto& p : seen) Publish(index, {.kind = Kind::kRemoved, .blocks = p.chain});
  RC_ASSERT(index.blocks() == 0u);
  RC_ASSERT(index.tokens() == 0u);
}

}  // namespace
}  // namespace hidane::routing
