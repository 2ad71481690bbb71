#include "sched/kv_cache.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <map>
#include <set>

#include "sched/block_digest.h"
#include "sched/ghost_set.h"

namespace hidane::sched {
namespace {

std::vector<Sha256Digest> Chain(const std::vector<TokenId>& tokens, std::string_view salt = "") {
  return BlockDigester().Chain(tokens, 2, salt);
}

TEST(BlockDigesterTest, OnlyFullBlocksHaveAName) {
  EXPECT_EQ(Chain({1, 2, 3}).size(), 1u);
}

TEST(BlockDigesterTest, ABlockIsNamedByItsTokensItsPredecessorsAndTheSalt) {
  const auto chain = Chain({1, 2, 1, 2});
  EXPECT_NE(chain[0], chain[1]);
  EXPECT_NE(Chain({9, 2, 1, 2})[1], chain[1]);
  EXPECT_NE(Chain({1, 2, 1, 2}, "tenant")[0], chain[0]);
  EXPECT_EQ(Chain({1, 2, 1, 2, 3, 4})[1], chain[1]);
}

// A request holds its whole table and gives it back whole, as the scheduler does.
std::vector<BlockId> Compute(KvCache& cache, const std::vector<Sha256Digest>& chain) {
  std::vector<BlockId> table;
  cache.Hold(std::span(chain).first(cache.Find(chain).blocks), table);
  for (size_t i = table.size(); i < chain.size(); ++i) {
    table.push_back(cache.Publish(chain[i], *cache.Allocate()));
  }
  return table;
}

TEST(KvCacheTest, AReleasedTableStaysAHitUntilItsBlocksAreNeeded) {
  KvCache cache(3);
  const auto a = Chain({1, 1, 2, 2}), b = Chain({7, 7, 8, 8});
  cache.ReleaseTable(Compute(cache, a));
  EXPECT_EQ(cache.Find(a).blocks, 2u);
  EXPECT_EQ(cache.Find(a).free, 2u);
  cache.ReleaseTable(Compute(cache, b));  // takes the empty block and a's leaf
  EXPECT_EQ(cache.Find(a).blocks, 1u);
  EXPECT_EQ(cache.Find(b).blocks, 2u);
}

TEST(KvCacheTest, AgeIsTheLastUseNotTheFirst) {
  KvCache cache(2);
  const auto a = Chain({1, 1}), b = Chain({2, 2});
  cache.ReleaseTable(Compute(cache, a));
  cache.ReleaseTable(Compute(cache, b));
  cache.ReleaseTable(Compute(cache, a));  // used again
  (void)cache.Find(b);                    // a look is no use
  cache.ReleaseTable(Compute(cache, Chain({3, 3})));
  EXPECT_EQ(cache.Find(a).blocks, 1u);
  EXPECT_EQ(cache.Find(b).blocks, 0u);
}

// A prefix that requests begin with, and ends that come once.
TEST(KvCacheTest, WhatIsUsedAgainOutlivesWhatComesOnce) {
  for (const Eviction eviction : {Eviction::kLru, Eviction::kReuse}) {
    KvCache cache(16, eviction);
    const auto prefix = Chain({1, 1, 2, 2, 3, 3, 4, 4});
    TokenId next = 100;
    const auto once = [&] { return Chain({next, ++next, next, ++next}); };
    for (int i = 0; i < 100; ++i) {  // odds are learned
      if (i % 4 == 0) cache.ReleaseTable(Compute(cache, prefix));
      cache.ReleaseTable(Compute(cache, once()));
    }
    for (int i = 0; i < 12; ++i) cache.ReleaseTable(Compute(cache, once()));
    EXPECT_EQ(cache.Find(prefix).blocks, eviction == Eviction::kLru ? 0u : 4u);
  }
}

// Each turn of a conversation uses the one before once.
TEST(KvCacheTest, WhereNewBlocksAreUsedAgainAsOldOnesAreTheOrderIsByLastUse) {
  KvCache cache(64, Eviction::kReuse);
  std::vector<std::vector<TokenId>> talks(4);
  for (TokenId i = 0; i < 400; ++i) {
    auto& talk = talks[static_cast<size_t>(i) % 4];
    if (talk.size() > 20) talk.clear();  // a new one
    talk.insert(talk.end(), {1'000 * i, i});
    const auto chain = Chain(talk);
    EXPECT_EQ(cache.Find(chain).blocks + 1, chain.size()) << i;
    cache.ReleaseTable(Compute(cache, chain));
  }
}

TEST(KvCacheTest, ABlockWithoutContentsIsUsedBeforeAnyCachedOne) {
  KvCache cache(2);
  const auto a = Chain({1, 1});
  cache.ReleaseTable(Compute(cache, a));
  const BlockId scratch = *cache.Allocate();  // the tail of a prompt, never full
  ASSERT_TRUE(cache.Release(scratch));
  EXPECT_EQ(*cache.Allocate(), scratch);
  EXPECT_EQ(cache.Find(a).blocks, 1u);
}

TEST(KvCacheTest, TheSameContentsComputedTwiceBecomeOneBlock) {
  KvCache cache(2);
  const auto a = Chain({1, 1});
  const BlockId first = cache.Publish(a[0], *cache.Allocate());
  const BlockId second = cache.Publish(a[0], *cache.Allocate());
  EXPECT_EQ(first, second);
  EXPECT_EQ(*cache.RefCount(first), 2u);
  EXPECT_EQ(cache.blocks_free(), 1u);
}

TEST(KvCacheTest, RefusesAForeignBlock) {
  KvCache cache(1);
  EXPECT_EQ(cache.Release(BlockId(1)).error().code, Code::kInvalidArgument);
  EXPECT_EQ(cache.Unpublish(BlockId(1)).error().code, Code::kInvalidArgument);
  EXPECT_EQ(cache.Release(BlockId(0)).error().code, Code::kInternal);
}

// The same as Find, block by block.
KvCache::Hit Walk(const KvCache& cache, const std::vector<Sha256Digest>& chain) {
  KvCache::Hit sum;
  for (const Sha256Digest& digest : chain) {
    const KvCache::Hit one = cache.Find(std::span(&digest, 1));
    if (one.blocks == 0) break;
    sum.blocks += 1;
    sum.free += one.free;
  }
  return sum;
}

// Whatever was computed in whatever order, a chain is forgotten from its end: no block outlives
// the block before it.
RC_GTEST_PROP(KvCacheProps, ACachedBlockIsReachable,
              (const std::vector<uint8_t>& requests, bool lru)) {
  KvCache cache(6, lru ? Eviction::kLru : Eviction::kReuse);
  std::set<Sha256Digest> all;
  std::vector<std::vector<Sha256Digest>> chains;
  for (const uint8_t r : requests) {
    std::vector<TokenId> tokens;
    for (int i = 0; i < 1 + r % 4; ++i) tokens.insert(tokens.end(), 2, r >> (4 + i) & 1);
    chains.push_back(Chain(tokens));
    all.insert(chains.back().begin(), chains.back().end());
    cache.ReleaseTable(Compute(cache, chains.back()));

    std::set<Sha256Digest> reachable;
    for (const auto& chain : chains) {
      reachable.insert(chain.begin(), chain.begin() + Walk(cache, chain).blocks);
    }
    RC_ASSERT(reachable.size() == cache.blocks_published());
    RC_ASSERT(cache.blocks_free() == cache.blocks());
  }
}

// Tables are held and given back in any order; searching by halves finds what a walk finds.
RC_GTEST_PROP(KvCacheProps, ASearchFindsWhatAWalkFinds,
              (const std::vector<uint8_t>& requests, bool lru)) {
  KvCache cache(12, lru ? Eviction::kLru : Eviction::kReuse);
  std::vector<std::vector<BlockId>> held;
  for (const uint8_t r : requests) {
    std::vector<TokenId> tokens;
    for (int i = 0; i < 1 + r % 4; ++i) tokens.insert(tokens.end(), 2, r >> (4 + i) & 1);
    const auto chain = Chain(tokens);
    const KvCache::Hit expected = Walk(cache, chain), found = cache.Find(chain);
    RC_ASSERT(found.blocks == expected.blocks);
    RC_ASSERT(found.free == expected.free);
    if (cache.blocks_free() >= chain.size()) held.push_back(Compute(cache, chain));
    if (held.size() > 2) {
      const auto at = held.begin() + r % 3;
      cache.ReleaseTable(*at);
      held.erase(at);
    }
  }
}

// Digests whose homes meet, so that entries move when one before them goes.
RC_GTEST_PROP(PrefixIndexProps, IsAMap, (const std::vector<uint8_t>& ops)) {
  constexpr uint32_t kBlocks = 5;
  PrefixIndex index(kBlocks);
  std::map<Sha256Digest, uint32_t> model;
  const auto digest = [](uint8_t i) { return Sha256Digest{static_cast<uint8_t>(i % 3 * 7), i}; };
  for (const uint8_t op : ops) {
    const BlockId block(op % kBlocks);
    const Sha256Digest d = digest(op / 16);
    if (op / 8 % 2 == 0 || index.Contains(block)) {
      index.Unpublish(block);
      std::erase_if(model, [&](const auto& entry) { return entry.second == block.value(); });
    } else {
      RC_ASSERT(index.Publish(d, block).value() ==
                model.try_emplace(d, block.value()).first->second);
    }
    RC_ASSERT(index.size() == model.size());
    for (uint8_t i = 0; i < 16; ++i) {
      const auto found = index.Find(digest(i));
      const auto expected = model.find(digest(i));
      RC_ASSERT(found.has_value() == (expected != model.end()));
      if (found) RC_ASSERT(found->value() == expected->second);
    }
  }
}

TEST(GhostSetTest, RemembersAtLeastItsCapacityAndStaysBounded) {
  GhostSet ghost(4);
  const auto digest = [](uint8_t i) { return Sha256Digest{i}; };
  for (uint8_t i = 0; i < 100; ++i) {
    ghost.Add(digest(i));
    EXPECT_LE(ghost.size(), 8u);
    for (uint8_t back = 0; back < std::min<uint8_t>(i, 4); ++back) {
      EXPECT_TRUE(ghost.Contains(digest(i - back)));
    }
  }
  EXPECT_FALSE(ghost.Contains(digest(0)));
  ghost.Clear();
  EXPECT_FALSE(ghost.Contains(digest(99)));
}

}  // namespace
}  // namespace hidane::sched
