// Many sequences that share a prefix, evict and are preempted.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "vtoken/kv_world.h"

namespace hidane::vtoken {
namespace {

using Slots = std::vector<uint32_t>;

// 200 sequences with a common prefix evict over their cap while some are preempted by snapshot.
class Crowd {
 public:
  explicit Crowd(bool preempt) : preempt_(preempt) {}

  std::vector<Slots> Run() {
    Grow(leader_, 32);
    for (uint32_t i = 0; i < 200; ++i) {
      SequenceKv kv(kShape);
      for (const BlockId block : leader_.table()) HIDANE_ASSERT(world_.Retain(block));
      HIDANE_ASSERT(kv.Adopt(leader_.table(), 32));
      seqs_.push_back(std::move(kv));
    }
    for (uint32_t step = 0; step < 40; ++step) Step(step);
    std::vector<Slots> layouts;
    for (SequenceKv& kv : seqs_) {
      Slots& layout = layouts.emplace_back();
      for (uint32_t u = 0; u < 2; ++u) {
        for (uint32_t slot = 0; slot < kv.active_length(); ++slot) {
          layout.push_back(kv.token(u, slot));
        }
      }
      HIDANE_ASSERT(kv.Release(world_));
    }
    HIDANE_ASSERT(leader_.Release(world_));
    return layouts;
  }
  uint32_t free() { return world_.pool().free(); }
  static constexpr uint32_t kBlocks = 6000;

 private:
  static constexpr SequenceShape kShape{.block_size = 4, .scope = Scope::kLayer, .units = 2};
  static constexpr uint32_t kCap = 24;

  void Grow(SequenceKv& kv, uint32_t n) { HIDANE_ASSERT(kv.Reserve(world_, n) && kv.Append(n)); }
  // Victims are a function of sequence, unit and token, as a policy's would be.
  static Slots Victims(const SequenceKv& kv, uint32_t id) {
    Slots victims;
    for (uint32_t u = 0; u < 2; ++u) {
      std::vector<std::pair<uint64_t, uint32_t>> order;
      for (uint32_t slot = 0; slot < kv.active_length(); ++slot) {
        order.emplace_back(Mix64(uint64_t{id} << 32 | (kv.token(u, slot) * 2 + u)), slot);
      }
      std::sort(order.begin(), order.end());
      for (uint32_t i = kCap; i < order.size(); ++i) victims.push_back(order[i].second);
    }
    return victims;
  }
  void Step(uint32_t step) {
    for (uint32_t id = 0; id < seqs_.size(); ++id) {
      SequenceKv& kv = seqs_[id];
      if (preempt_ && Mix64(step * 1000 + id) % 7 == 0) {
        const Snapshot snapshot = kv.Export();
        HIDANE_ASSERT(kv.Release(world_));
        kv = *SequenceKv::Import(snapshot, kShape, world_);
      }
      Grow(kv, 1);
      if (kv.active_length() <= kCap + id % 3) continue;
      HIDANE_ASSERT(epoch_.Evict(kv, Victims(kv, id), {.incoming = 1}));
    }
    HIDANE_ASSERT(epoch_.Seal() && epoch_.Commit());
  }

  bool preempt_;
  KvWorld world_{kBlocks, 4, 2};
  Epoch epoch_{world_};
  SequenceKv leader_{kShape};
  std::vector<SequenceKv> seqs_;
};

TEST(EpochCrowdTest, PreemptionChangesNoLayoutAndNoBlockIsLost) {
  Crowd calm(false), pressed(true);
  const auto a = calm.Run(), b = pressed.Run();
  EXPECT_EQ(a, b);
  EXPECT_EQ(calm.free(), Crowd::kBlocks);
  EXPECT_EQ(pressed.free(), Crowd::kBlocks);
}

}  // namespace
}  // namespace hidane::vtoken
