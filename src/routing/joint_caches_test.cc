#include "routing/joint_caches.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <algorithm>
#include <utility>
#include <vector>

namespace hidane::routing {
namespace {

constexpr uint64_t kCapacity = 100;
constexpr uint64_t kWorker = 7;

JointCaches::Use Turn(uint64_t k1, uint64_t k2, uint32_t tokens, uint64_t worker = kWorker) {
  return {.worker = worker, .k1 = k1, .k2 = k2, .k1_tokens = 20, .tokens = tokens};
}

TEST(JointCachesTest, WhatWasUsedLongestAgoIsLeftWithWhatOthersLeave) {
  JointCaches caches(100);
  caches.Add(Turn(1, 10, 40), kCapacity);
  caches.Add(Turn(1, 11, 30), kCapacity);
  EXPECT_EQ(caches.Left(kWorker, 10), 40u) << "20 of the prefix they share, 30, 40";
  caches.Add(Turn(1, 12, 25), kCapacity);
  EXPECT_EQ(caches.Left(kWorker, 10), 25u);
  caches.Add(Turn(2, 13, 10), kCapacity);
  EXPECT_EQ(caches.Left(kWorker, 10), 0u);
  EXPECT_EQ(caches.Left(kWorker, 11), 25u);
  EXPECT_EQ(caches.Left(kWorker, 13), 10u);
}

TEST(JointCachesTest, ATurnCountsOnceHoweverOftenItIsTold) {
  JointCaches caches(100);
  for (int i = 0; i < 3; ++i) {
    caches.Add(Turn(1, 10, 40), kCapacity);
    caches.Add(Turn(1, 11, 40), kCapacity);
  }
  EXPECT_EQ(caches.Left(kWorker, 10), 40u);
  EXPECT_EQ(caches.Left(kWorker, 11), 40u);
}

TEST(JointCachesTest, WorkersAreApartAndOneThatLeftHoldsNothing) {
  JointCaches caches(100);
  caches.Add(Turn(1, 10, 80), kCapacity);
  caches.Add(Turn(1, 11, 80, kWorker + 1), kCapacity);
  EXPECT_EQ(caches.Left(kWorker, 10), 80u);
  EXPECT_EQ(caches.Left(kWorker, 11), 0u);
  caches.Forget(kWorker);
  EXPECT_EQ(caches.Left(kWorker, 10), 0u);
  EXPECT_EQ(caches.Left(kWorker + 1, 11), 80u);
}

TEST(JointCachesTest, WhatComesOnceTakesRoomUntilItIsTheOldest) {
  JointCaches caches(100);
  const auto once = [](uint64_t k1, uint32_t tokens, double at_s) {
    JointCaches::Use use = Turn(k1, 0, tokens);
    use.now = FromSeconds(at_s);
    return use;
  };
  caches.Add(once(1, 20, 1.1), kCapacity);
  caches.Add(once(2, 20, 1.9), kCapacity);
  EXPECT_EQ(caches.EvictsNext(kWorker), std::nullopt) << "80 of 100";
  caches.Add(once(3, 0, 2), kCapacity);
  EXPECT_EQ(caches.EvictsNext(kWorker), FromSeconds(1.1)) << "prefix 1, older than what passed";
  caches.Add(once(3, 30, 3), kCapacity);
  EXPECT_EQ(caches.Left(kWorker, 1), 0u);
  EXPECT_EQ(caches.Left(kWorker, 2), 20u);
  EXPECT_EQ(caches.EvictsNext(kWorker), FromSeconds(1.9)) << "30 of the 40 that passed are left";
}

TEST(JointCachesTest, OnesOwnRequestsAreNotHeard) {
  JointCaches caches(100);
  caches.Add(Turn(1, 10, 40), kCapacity);
  EXPECT_FALSE(caches.hears());
  caches.SetHears();
  EXPECT_TRUE(caches.hears());
}

TEST(JointCachesTest, AnUnknownWorkerHasRoom) {
  const JointCaches caches(100);
  EXPECT_EQ(caches.EvictsNext(kWorker), std::nullopt);
  EXPECT_EQ(caches.Left(kWorker, 1), 0u);
}

// The same by adding up what was used since, the latest first.
class Recent {
 public:
  void Use(uint64_t key, uint32_t tokens) {
    std::erase_if(latest_first_, [key](const auto& entry) { return entry.first == key; });
    latest_first_.insert(latest_first_.begin(), {key, tokens});
    uint64_t room = kCapacity;
    for (auto& [_, left] : latest_first_) {
      left = static_cast<uint32_t>(std::min<uint64_t>(left, room));
      room -= left;
    }
  }
  uint32_t Left(uint64_t key) const {
    const auto at = std::ranges::find(latest_first_, key, &std::pair<uint64_t, uint32_t>::first);
    return at == latest_first_.end() ? 0 : at->second;
  }

 private:
  std::vector<std::pair<uint64_t, uint32_t>> latest_first_;
};

RC_GTEST_PROP(JointCachesProperty, LeftIsWhatFitsBesideAllThatWasUsedSince, ()) {
  JointCaches caches(1'000);
  Recent model;
  const auto turns = *rc::gen::container<std::vector<std::pair<uint8_t, uint8_t>>>(
      rc::gen::arbitrary<std::pair<uint8_t, uint8_t>>());
  for (const auto& [id, size] : turns) {
    const uint64_t k1 = id % 3;
    const uint64_t k2 = 10 + id % 12;
    caches.Add(Turn(k1, k2, size % 70), kCapacity);
    model.Use(k2, size % 70);
    model.Use(k1, 20);
    for (uint64_t other = 10; other < 22; ++other) {
      RC_ASSERT(caches.Left(kWorker, other) == model.Left(other));
    }
  }
}

}  // namespace
}  // namespace hidane::routing
