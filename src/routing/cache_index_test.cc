#include "routing/cache_index.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <list>
#include <map>

#include "routing/routing_test_util.h"

namespace hidane::routing {
namespace {

constexpr uint32_t kB = kTestBlockTokens;

TEST(CacheIndexTest, MatchesTheLongestKnownPrefix) {
  CacheIndex index(100'000);
  const auto a = MakePrompt({{1, 10 * kB}, {2, 3 * kB}});
  EXPECT_EQ(index.Find(a).blocks, 0u);
  index.Insert(a, 1, At(1));
  EXPECT_EQ(index.Find(a).blocks, 13u);
  EXPECT_EQ(index.Find(MakePrompt({{1, 10 * kB}, {9, 3 * kB}})).blocks, 10u);
  EXPECT_EQ(index.Find(MakePrompt({{1, 4 * kB}})).blocks, 4u);
  EXPECT_EQ(index.Find(MakePrompt({{9, 4 * kB}})).blocks, 0u);
  EXPECT_EQ(index.tokens(), 13 * kB);
}

TEST(CacheIndexTest, ABranchSharesWhatItCanAndCountsTheRestOnce) {
  CacheIndex index(100'000);
  const auto a = MakePrompt({{1, 10 * kB}, {2, 3 * kB}});
  const auto b = MakePrompt({{1, 10 * kB}, {3, 5 * kB}});
  index.Insert(a, 1, At(1));
  index.Insert(b, 1, At(2));
  EXPECT_EQ(index.blocks(), 18u);
  EXPECT_EQ(index.Find(a).blocks, 13u);
  EXPECT_EQ(index.Find(b).blocks, 15u);
}

TEST(CacheIndexTest, ForgetsTheLeastRecentLeafFirst) {
  CacheIndex index(20 * kB);
  const auto shared = std::vector<TestPart>{{1, 10 * kB}};
  const auto with = [&](uint64_t seed) { return MakePrompt({{1, 10 * kB}, {seed, 5 * kB}}); };
  index.Insert(with(2), 1, At(1));
  index.Insert(with(3), 1, At(2));
  index.Insert(with(2), 1, At(3));
  index.Insert(with(4), 1, At(4));  // 25 blocks wanted, 20 kept
  EXPECT_EQ(index.Find(with(3)).blocks, 10u) << "the oldest leaf left, the shared stem stays";
  EXPECT_EQ(index.Find(with(2)).blocks, 15u);
  EXPECT_EQ(index.Find(with(4)).blocks, 15u);
}

TEST(CacheIndexTest, AnEvictionTeachesThatAllOlderEntriesAreGone) {
  CacheIndex index(100'000);
  const auto prompt = [](uint64_t seed) { return MakePrompt({{seed, 5 * kB}}); };
  for (uint64_t s = 1; s <= 3; ++s) index.Insert(prompt(s), 1, At(static_cast<double>(s)));
  const TimePoint used = index.Find(prompt(2)).last_used;
  index.Insert(prompt(2), 1, At(4));  // computed anew: it is there again
  index.ForgetUnusedSince(used);
  EXPECT_EQ(index.Find(prompt(1)).blocks, 0u);
  EXPECT_EQ(index.Find(prompt(2)).blocks, 5u);
  EXPECT_EQ(index.Find(prompt(3)).blocks, 5u);
}

TEST(CacheIndexTest, ARestartedWorkerIsEmptyAtOnce) {
  CacheIndex index(100'000);
  const auto a = MakePrompt({{1, 10 * kB}});
  index.Insert(a, 1, At(1));
  index.Clear();
  EXPECT_EQ(index.Find(a).blocks, 0u);
  EXPECT_EQ(index.tokens(), 0u);
  index.Insert(a, 1, At(2));
  EXPECT_EQ(index.Find(a).blocks, 10u);
}

TEST(CacheIndexTest, AFailedPrefillIsForgotten) {
  CacheIndex index(100'000);
  index.Insert(MakePrompt({{1, 10 * kB}}), 1, At(1));
  const auto longer = MakePrompt({{1, 10 * kB}, {2, 4 * kB}});
  index.Insert(longer, 1, At(2));
  index.ForgetRun(longer.chain[10]);
  EXPECT_EQ(index.Find(longer).blocks, 10u);
}

// The model: blocks one by one in LRU order, a whole prompt's path touched leaf first.
class Model {
 public:
  explicit Model(size_t capacity_blocks) : capacity_(capacity_blocks) {}
  size_t Find(const prompt::Identity& p) const {
    size_t n = 0;
    while (n < p.size() && at_.contains(p.chain[n])) ++n;
    return n;
  }
  void Insert(const prompt::Identity& p) {
    for (auto block = p.chain.rbegin(); block != p.chain.rend(); ++block) {
      if (const auto at = at_.find(*block); at != at_.end()) lru_.erase(at->second);
      lru_.push_front(*block);
      at_[*block] = lru_.begin();
    }
    while (lru_.size() > capacity_) {
      at_.erase(lru_.back());
      lru_.pop_back();
    }
  }

 private:
  size_t capacity_;
  std::list<uint64_t> lru_;
  std::map<uint64_t, std::list<uint64_t>::iterator> at_;
};

RC_GTEST_PROP(CacheIndexProperty, AgreesWithAPlainBlockLru, ()) {
  const size_t capacity = *rc::gen::inRange<size_t>(1, 40);
  CacheIndex index(capacity * kB);
  Model model(capacity);
  const auto part = rc::gen::construct<TestPart>(
      rc::gen::map(rc::gen::inRange<uint64_t>(0, 3), [](uint64_t s) { return 100'000 * s; }),
      rc::gen::map(rc::gen::inRange<uint32_t>(1, 8), [](uint32_t n) { return n * kB; }));
  const auto prompts = *rc::gen::container<std::vector<std::vector<TestPart>>>(
      rc::gen::nonEmpty(rc::gen::container<std::vector<TestPart>>(part)));
  double t = 0;
  for (const auto& parts : prompts) {
    const auto p = MakePrompt(parts);
    RC_ASSERT(index.Find(p).blocks == model.Find(p));
    index.Insert(p, 1, At(++t));
    model.Insert(p);
    RC_ASSERT(index.Find(p).blocks == model.Find(p));
    RC_ASSERT(index.tokens() <= capacity * kB);
  }
}

}  // namespace
}  // namespace hidane::routing
