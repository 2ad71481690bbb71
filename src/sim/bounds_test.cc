#include "sim/bounds.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <set>

#include "base/rng.h"

namespace hidane::sim {
namespace {

/// A prompt of the named blocks, `each` tokens a block; equal beginnings make equal prompts.
Request Of(const std::vector<uint64_t>& blocks, uint32_t each = 10, size_t answer_blocks = 0) {
  Request request;
  uint64_t hash = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    hash = Mix64(hash ^ blocks[i]);
    const auto end = static_cast<uint32_t>(i + 1) * each;
    if (i + answer_blocks < blocks.size()) {
      request.prompt.chain.push_back(hash);
      request.prompt.ends.push_back(end);
    } else {
      request.answer_chain.push_back(hash);
      request.answer_ends.push_back(end);
    }
  }
  request.prompt.tokens = request.prompt.bytes();
  return request;
}

HitBounds Sequence(const std::vector<Request>& requests) {
  HitBounds bounds;
  for (const Request& request : requests) bounds.Add(request);
  return bounds;
}

TEST(HitBoundsTest, WithoutEndOfMemoryEachTokenIsComputedOnce) {
  // 30 + 30 + 20 + 30 tokens; known: 0, 20, 20, 10.
  const HitBounds bounds = Sequence({Of({1, 2, 3}), Of({1, 2, 4}), Of({1, 2}), Of({1, 5, 6})});
  EXPECT_DOUBLE_EQ(bounds.Infinite(), 50.0 / 110);
  EXPECT_DOUBLE_EQ(bounds.Within(1'000), 50.0 / 110);
  EXPECT_DOUBLE_EQ(bounds.Within(0), 0);
}

TEST(HitBoundsTest, AnAnswerIsKnownToTheNextTurn) {
  const HitBounds bounds = Sequence({Of({1, 2, 3}, 10, 1), Of({1, 2, 3, 4})});
  EXPECT_DOUBLE_EQ(bounds.Infinite(), 30.0 / 60);
  EXPECT_DOUBLE_EQ(bounds.Within(1'000), 30.0 / 60);
}

TEST(HitBoundsTest, WarmUpFillsTheCacheAndIsInNoFigure) {
  Request warm_up = Of({1, 2});
  warm_up.counted = false;
  const HitBounds bounds = Sequence({warm_up, Of({1, 2})});
  EXPECT_DOUBLE_EQ(bounds.Infinite(), 1);
  EXPECT_DOUBLE_EQ(bounds.Within(20), 1);
  EXPECT_TRUE(std::isnan(HitBounds().Infinite()));
}

TEST(HitBoundsTest, WhoKnowsTheFutureKeepsWhatIsNeededSoonest) {
  // Three prompts in turn, room for two: LRU would never hit.
  const HitBounds bounds = Sequence({Of({1}), Of({2}), Of({3}), Of({1}), Of({2}), Of({3})});
  EXPECT_DOUBLE_EQ(bounds.Within(20), 2.0 / 6);
  EXPECT_DOUBLE_EQ(bounds.Within(15), 1.5 / 6) << "half a prompt counts as half";
  EXPECT_DOUBLE_EQ(bounds.Within(10), 1.0 / 6);
}

TEST(HitBoundsTest, ASharedBeginningTakesMemoryOnce) {
  const HitBounds bounds =
      Sequence({Of({1, 1, 1, 2}), Of({1, 1, 1, 3}), Of({1, 1, 1, 2}), Of({1, 1, 1, 3})});
  EXPECT_DOUBLE_EQ(bounds.Within(50), 110.0 / 160);
  EXPECT_DOUBLE_EQ(bounds.Within(40), 100.0 / 160);
}

/// The most that any cache of `capacity` blocks can hit, by trying all choices.
uint64_t BestOfAll(const std::vector<uint64_t>& sequence, size_t at, std::set<uint64_t> kept,
                   size_t capacity) {
  if (at == sequence.size()) return 0;
  const uint64_t hit = kept.count(sequence[at]);
  kept.insert(sequence[at]);
  if (kept.size() <= capacity) return hit + BestOfAll(sequence, at + 1, kept, capacity);
  uint64_t best = 0;
  for (const uint64_t out : kept) {
    std::set<uint64_t> rest = kept;
    rest.erase(out);
    best = std::max(best, BestOfAll(sequence, at + 1, rest, capacity));
  }
  return hit + best;
}

RC_GTEST_PROP(HitBoundsProperty, IsWhatTheBestOfAllCachesReaches, ()) {
  const auto sequence = *rc::gen::resize(
      10, rc::gen::nonEmpty(
              rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(1, 5))));
  const auto capacity = *rc::gen::inRange<size_t>(1, 4);
  HitBounds bounds;
  for (const uint64_t block : sequence) bounds.Add(Of({block}));
  const auto best = static_cast<double>(BestOfAll(sequence, 0, {}, capacity));
  RC_ASSERT(std::abs(bounds.Within(10 * capacity) - best / double(sequence.size())) < 1e-12);
}

RC_GTEST_PROP(HitBoundsProperty, GrowsWithMemoryUpToTheInfiniteCache, ()) {
  Rng rng(*rc::gen::arbitrary<uint64_t>());
  HitBounds bounds;
  for (int i = 0; i < 60; ++i) {
    std::vector<uint64_t> blocks(1 + rng.Below(6));
    for (uint64_t& block : blocks) block = rng.Below(3);
    bounds.Add(Of(blocks, 7, rng.Below(blocks.size())));
  }
  double before = 0;
  for (uint64_t tokens = 0; tokens < 1'500; tokens += 50) {
    const double now = bounds.Within(tokens);
    RC_ASSERT(now >= before);
    before = now;
  }
  RC_ASSERT(bounds.Within(1u << 30) == bounds.Infinite());
}

TEST(MakespanTest, ByHand) {
  EXPECT_DOUBLE_EQ(MakespanAtLeast({}, 3), 0);
  EXPECT_DOUBLE_EQ(MakespanAtLeast({5, 1, 1}, 3), 5) << "the longest job";
  EXPECT_DOUBLE_EQ(MakespanAtLeast({2, 2, 2, 2, 2}, 2), 6) << "one engine gets three of five";
  EXPECT_DOUBLE_EQ(MakespanBalanced({2, 2, 2, 2, 2}, 2), 6);
  EXPECT_DOUBLE_EQ(MakespanAtLeast({3, 3, 2, 2, 2}, 2), 6) << "the mean load";
  EXPECT_DOUBLE_EQ(MakespanBalanced({3, 3, 2, 2, 2}, 2), 7) << "LPT is not the optimum";
}

// reference figure of the seed scenario: a burst of 100 over 80 tenants has 57 distinct ones; 16
// engines compute them in 4.4 s, and 42 % of the tokens may hit.
TEST(ColdBurstTest, OfTheSeedScenario) {
  std::vector<Request> burst;
  for (uint64_t i = 0; i < 100; ++i) {
    std::vector<uint64_t> blocks(27, 1 + i % 57);
    blocks.push_back(1'000 + i);
    Request request = Of(blocks, 1'000);
    request.prompt.k1_end = 27;
    burst.push_back(request);
  }
  const ColdBurst bound = BoundColdBurst(burst, *FindGpuSetup("8b-bf16-h100"), 16);
  EXPECT_EQ(bound.prefixes, 57u);
  EXPECT_NEAR(bound.hit_ratio, 0.43 * 27 / 28, 1e-9);
  EXPECT_NEAR(bound.balanced_s, 4.4, 0.1);
  EXPECT_NEAR(bound.at_least_s, bound.balanced_s, 1e-9);
}

}  // namespace
}  // namespace hidane::sim
