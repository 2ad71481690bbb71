#include "vtoken/epoch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "vtoken/kv_world.h"
#include "vtoken/victim_log.h"

namespace hidane::vtoken {
namespace {

using Slots = std::vector<uint32_t>;

class EpochTest : public testing::Test {
 protected:
  // Appends n tokens with their rows.
  void Write(SequenceKv& kv, uint32_t n, uint64_t writer = 1) {
    ASSERT_TRUE(kv.Reserve(world_, n));
    for (uint32_t i = 0; i < n; ++i) {
      for (uint32_t u = 0; u < kv.shape().units; ++u) {
        const bool waits = !kv.waiting_slots().empty();
        const uint32_t slot = waits ? kv.waiting_slots()[u] : kv.active_length() + i;
        world_.row(kv, u, slot) = KvWorld::Tag(writer, kv.logical_length() + i, u);
      }
    }
    ASSERT_TRUE(kv.Append(n));
  }
  void Copy() {
    ASSERT_TRUE(epoch_.Seal());
    ASSERT_TRUE(world_.Wait(*world_.Start(epoch_.groups())));
  }
  void Finish() {
    Copy();
    ASSERT_TRUE(epoch_.Commit());
  }
  static Slots Tokens(const SequenceKv& kv, uint32_t unit = 0) {
    Slots tokens;
    for (uint32_t slot = 0; slot <= kv.active_length(); ++slot) {
      if (kv.live(unit, slot)) tokens.push_back(kv.token(unit, slot));
    }
    return tokens;
  }
  void ExpectRows(const SequenceKv& kv, uint64_t writer = 1) {
    for (uint32_t u = 0; u < kv.shape().units; ++u) {
      for (uint32_t slot = 0; slot <= kv.active_length(); ++slot) {
        if (!kv.live(u, slot)) continue;
        EXPECT_EQ(world_.row(kv, u, slot), KvWorld::Tag(writer, kv.token(u, slot), u));
      }
    }
  }

  KvWorld world_{16, 4, 2};
  Epoch epoch_{world_};
};

// The host's calls, each of which may be made to fail.
class FailingHost final : public BlockPoolAdapter {
 public:
  FailingHost(KvWorld& world, int good_calls) : world_(world), left_(good_calls) {}
  Result<uint32_t> RefCount(BlockId b) const override { return Ask(world_.RefCount(b)); }
  Result<bool> Pinned(BlockId b) const override { return Ask(world_.Pinned(b)); }
  Result<BlockId> Allocate() override {
    if (left_-- == 0) return Fail(Code::kInternal, "host");
    return world_.Allocate();
  }
  Status Retain(BlockId b) override { return Ask(world_.Retain(b)); }
  Status Release(BlockId b) override { return world_.Release(b); }
  Status Unpublish(BlockId b) override { return Ask(world_.Unpublish(b)); }

 private:
  template <class R>
  R Ask(R answer) const {
    if (left_-- == 0) return Fail(Code::kInternal, "host");
    return answer;
  }
  KvWorld& world_;
  mutable int left_;
};

constexpr SequenceShape kOne{.block_size = 4};
constexpr SequenceShape kTwo{.block_size = 4, .scope = Scope::kLayer, .units = 2};

TEST_F(EpochTest, EvictionMovesSurvivorsAndFreesWholeBlocks) {
  SequenceKv kv(kOne);
  Write(kv, 12);
  ASSERT_TRUE(epoch_.Evict(kv, Slots{1, 4, 5, 6}, {}));
  Finish();
  EXPECT_EQ(kv.table().size(), 2u);
  EXPECT_EQ(kv.active_length(), 8u);
  EXPECT_EQ(kv.logical_length(), 12u);
  EXPECT_EQ(Tokens(kv), (Slots{0, 7, 2, 3, 8, 9, 10, 11}));
  EXPECT_EQ(epoch_.stats().moves, 1u);
  EXPECT_EQ(world_.pool().free(), 14u);
  ExpectRows(kv);
}

TEST_F(EpochTest, UnitsLoseTheirOwnTokens) {
  SequenceKv kv(kTwo);
  Write(kv, 6);
  ASSERT_TRUE(epoch_.Evict(kv, Slots{0, 1, 4, 5}, {}));
  Finish();
  EXPECT_EQ(Tokens(kv, 0), (Slots{4, 5, 2, 3}));
  EXPECT_EQ(Tokens(kv, 1), (Slots{0, 1, 2, 3}));
  ExpectRows(kv);
}

TEST_F(EpochTest, TheNextTokenTakesTheDeadSlotAndNothingIsCopied) {
  SequenceKv kv(kTwo);
  Write(kv, 8);
  ASSERT_TRUE(epoch_.Evict(kv, Slots{2, 5}, {.incoming = 1}));
  Finish();
  EXPECT_EQ(epoch_.stats().moves, 0u);
  EXPECT_EQ(Slots(kv.waiting_slots().begin(), kv.waiting_slots().end()), (Slots{2, 5}));
  EXPECT_EQ(kv.active_length(), 7u);
  EXPECT_FALSE(kv.Append(2));  // a slot waits for exactly one
  Write(kv, 1);
  EXPECT_EQ(kv.active_length(), 8u);
  EXPECT_EQ(Tokens(kv, 0), (Slots{0, 1, 8, 3, 4, 5, 6, 7}));
  EXPECT_EQ(Tokens(kv, 1), (Slots{0, 1, 2, 3, 4, 8, 6, 7}));
  ExpectRows(kv);
}

TEST_F(EpochTest, ASlotThatWaitsInVainIsClosed) {
  SequenceKv kv(kOne);
  Write(kv, 8);
  ASSERT_TRUE(epoch_.Evict(kv, Slots{2}, {.incoming = 1}));
  Finish();
  ASSERT_TRUE(epoch_.Repair(kv, {.incoming = 0}));
  Finish();
  EXPECT_TRUE(kv.waiting_slots().empty());
  EXPECT_EQ(Tokens(kv), (Slots{0, 1, 7, 3, 4, 5, 6}));
  Write(kv, 3);
  EXPECT_EQ(kv.token(0, 7), 8u);
  ExpectRows(kv);
}

TEST_F(EpochTest, AHostMayPutASequenceIntoOtherBlocks) {
  SequenceKv kv(kTwo);
  Write(kv, 14);
  ASSERT_TRUE(epoch_.Evict(kv, Slots{1, 2, 5, 6, 9, 12}, {.incoming = 1}));
  EXPECT_FALSE(kv.SetTable(kv.table()));  // in an epoch
  Finish();
  const std::vector<BlockId> old(kv.table().begin(), kv.table().end());
  std::vector<uint64_t> rows;
  for (uint32_t slot = 0; slot <= kv.active_length(); ++slot)
    for (uint32_t u = 0; u < 2; ++u) rows.push_back(world_.row(kv, u, slot));

  std::vector<BlockId> blocks;
  for (size_t i = 0; i < old.size(); ++i) blocks.push_back(*world_.Allocate());
  EXPECT_FALSE(kv.SetTable(std::span(blocks).first(2)));  // 12 slots in use
  ASSERT_TRUE(kv.SetTable(blocks));
  for (const BlockId block : old) ASSERT_TRUE(world_.Release(block));
  for (uint32_t slot = 0; slot <= kv.active_length(); ++slot)
    for (uint32_t u = 0; u < 2; ++u) world_.row(kv, u, slot) = rows[slot * 2 + u];
  Write(kv, 1);
  ExpectRows(kv);
  EXPECT_EQ(kv.logical_length(), 15u);
}

TEST_F(EpochTest, ASharedBlockIsCopiedAndStaysForTheOthers) {
  SequenceKv kv(kOne);
  Write(kv, 8);
  SequenceKv other = *kv.Fork(world_);
  const BlockId first = kv.table()[0], second = kv.table()[1];
  ASSERT_TRUE(epoch_.Evict(kv, Slots{1}, {}));
  Finish();
  EXPECT_NE(kv.table()[0], first);   // written
  EXPECT_NE(kv.table()[1], second);  // the next token would be written there
  EXPECT_EQ(Tokens(kv), (Slots{0, 7, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Tokens(other), (Slots{0, 1, 2, 3, 4, 5, 6, 7}));
  ExpectRows(kv);
  ExpectRows(other);
  EXPECT_EQ(*world_.RefCount(first), 1u);
}

TEST_F(EpochTest, AForkOwnsItsTailBeforeItWrites) {
  SequenceKv kv(kOne);
  Write(kv, 6);
  SequenceKv other = *kv.Fork(world_);
  EXPECT_TRUE(other.must_own());
  EXPECT_FALSE(other.Reserve(world_, 1));
  ASSERT_TRUE(epoch_.Repair(other, {}));
  Finish();
  EXPECT_EQ(epoch_.stats().moves, 2u);
  EXPECT_EQ(other.table()[0], kv.table()[0]);
  EXPECT_NE(other.table()[1], kv.table()[1]);
  EXPECT_FALSE(other.evicted());
  Write(other, 1, 1);
  ExpectRows(other);
}

// The tokens to come: one of each unit into the slot that waits, then those behind the others.
TEST_F(EpochTest, AHostThatForksCopiesTheBlocksThatAreOpen) {
  SequenceKv kv(kTwo);
  Write(kv, 14);
  EXPECT_EQ(kv.OpenBlocks(), Slots{3});
  ASSERT_TRUE(epoch_.Evict(kv, Slots{2, 13, 5, 13}, {.incoming = 1}));
  Finish();
  EXPECT_EQ(kv.OpenBlocks(), (Slots{0, 1, 3}));

  std::vector<BlockId> blocks(kv.table().begin(), kv.table().end());
  for (const uint32_t open : kv.OpenBlocks()) {
    const BlockId from = std::exchange(blocks[open], *world_.Allocate());
    for (uint32_t u = 0; u < 2; ++u) {
      for (uint32_t i = 0; i < 4; ++i)
        world_.row(u, blocks[open].value() * 4 + i) = world_.row(u, from.value() * 4 + i);
    }
  }
  ASSERT_TRUE(world_.Retain(blocks[2]));
  EXPECT_FALSE(kv.ForkAt(std::span(blocks).first(3)));
  SequenceKv other = *kv.ForkAt(blocks);
  EXPECT_FALSE(other.must_own() || kv.must_own());
  Write(kv, 1);
  Write(other, 1);
  Write(kv, 3);
  for (uint32_t unit : {0u, 1u}) EXPECT_EQ(Tokens(other, unit).size(), 13u);
  ExpectRows(kv);
  ExpectRows(other);
  EXPECT_EQ(Tokens(kv, 0)[2], 14u);
  EXPECT_EQ(Tokens(kv, 1)[5], 14u);
}

TEST_F(EpochTest, APinnedSourceIsCopiedNotMoved) {
  SequenceKv kv(kOne);
  Write(kv, 8);
  const BlockId first = kv.table()[0];
  world_.Pin(kv, 0);
  ASSERT_TRUE(epoch_.Evict(kv, Slots{1, 5, 6, 7}, {}));
  Finish();
  EXPECT_EQ(world_.CheckReaders(), "");
  EXPECT_EQ(*world_.RefCount(first), 0u);
  EXPECT_EQ(kv.table().size(), 1u);
  ExpectRows(kv);
  EXPECT_EQ(world_.pool().free(), 14u);  // the pinned one is in quarantine
  world_.UnpinOldest();
  EXPECT_EQ(world_.pool().free(), 15u);
}

// The layout decides in which order attention sums, so it must not hang on who else holds a prefix.
TEST_F(EpochTest, TheLayoutIsTheSameWithAndWithoutSharers) {
  const auto run = [&](bool shared, Placement placement) {
    SequenceKv kv(kTwo);
    Write(kv, 14);
    SequenceKv other(kTwo);
    if (shared) other = *kv.Fork(world_);
    EXPECT_TRUE(epoch_.Evict(kv, Slots{0, 5, 6, 9, 1, 2, 9, 12}, {1, placement}));
    Finish();
    const auto tokens = Tokens(kv, 1);
    EXPECT_TRUE(kv.Release(world_) && other.Release(world_));
    return tokens;
  };
  EXPECT_EQ(run(true, Placement::kStable), run(false, Placement::kStable));
  EXPECT_NE(run(true, Placement::kFewestMoves), run(false, Placement::kFewestMoves));
  EXPECT_EQ(world_.pool().free(), 16u);
}

TEST_F(EpochTest, ChangedBlocksAreUnpublishedAndThoseBehindThem) {
  SequenceKv kv(kOne);
  Write(kv, 16);
  for (const BlockId block : kv.table()) world_.Publish(block);
  const BlockId first = kv.table()[0];
  const std::vector<BlockId> rest(kv.table().begin() + 1, kv.table().end());
  ASSERT_TRUE(epoch_.Evict(kv, Slots{6}, {}));
  Finish();
  EXPECT_TRUE(world_.published(first));
  for (const BlockId block : rest) EXPECT_FALSE(world_.published(block));
  EXPECT_EQ(kv.publishable_blocks(), 1u);
  EXPECT_EQ(world_.CheckReaders(), "");
}

TEST_F(EpochTest, WrongVictimsChangeNothing) {
  SequenceKv kv(kTwo);
  Write(kv, 6);
  for (const Slots& wrong : {Slots{6, 0}, Slots{1, 1, 2, 3}, Slots{0}, Slots{0, 1, 2}}) {
    EXPECT_EQ(epoch_.Evict(kv, wrong, {}).error().code, Code::kInvalidArgument);
    EXPECT_FALSE(kv.in_epoch());
  }
  ASSERT_TRUE(epoch_.Evict(kv, Slots{1, 2}, {}));
  EXPECT_FALSE(epoch_.Evict(kv, Slots{3, 3}, {}));  // in it already
  EXPECT_FALSE(kv.Append(1));
  Finish();
  EXPECT_EQ(kv.active_length(), 5u);
}

TEST_F(EpochTest, WithoutBlocksForTheCopiesNothingHappens) {
  SequenceKv kv(kOne);
  Write(kv, 8);
  SequenceKv other = *kv.Fork(world_), rest(kOne);
  ASSERT_TRUE(rest.Reserve(world_, 13 * 4));
  EXPECT_EQ(epoch_.Evict(kv, Slots{1, 6}, {}).error().code, Code::kResourceExhausted);
  EXPECT_FALSE(kv.in_epoch());
  EXPECT_EQ(world_.pool().free(), 1u);
  EXPECT_EQ(Tokens(kv).size(), 8u);
}

TEST_F(EpochTest, AnAbortBeforeTheCopyLeavesEverythingAsItWas) {
  SequenceKv kv(kOne);
  Write(kv, 8);
  world_.Publish(kv.table()[0]);
  ASSERT_TRUE(epoch_.Evict(kv, Slots{1, 2, 3, 4}, {}));
  ASSERT_TRUE(epoch_.Abort());
  EXPECT_EQ(Tokens(kv).size(), 8u);
  EXPECT_TRUE(world_.published(kv.table()[0]));
  EXPECT_EQ(kv.publishable_blocks(), UINT32_MAX);
  Write(kv, 1);
  ExpectRows(kv);
}

// Moves into holes overwrite victims: the sequence says so, instead of reading them again.
TEST_F(EpochTest, AnAbortDuringTheCopyDamagesWhoLostVictims) {
  SequenceKv kv(kOne), unharmed(kOne);
  Write(kv, 8);
  Write(unharmed, 8, 2);
  ASSERT_TRUE(epoch_.Evict(kv, Slots{1, 4, 5, 6}, {}));
  ASSERT_TRUE(epoch_.Evict(unharmed, Slots{4, 5, 6, 7}, {}));
  Copy();
  ASSERT_TRUE(epoch_.Abort());
  EXPECT_TRUE(kv.damaged());
  EXPECT_FALSE(kv.Append(1));
  EXPECT_FALSE(unharmed.damaged());
  ExpectRows(unharmed, 2);
  EXPECT_TRUE(kv.Release(world_) && unharmed.Release(world_));
  EXPECT_EQ(world_.pool().free(), 16u);
}

TEST_F(EpochTest, ASequenceThatEndsDuringTheCopyGivesItsBlocksBackAfterIt) {
  SequenceKv kv(kOne);
  Write(kv, 8);
  ASSERT_TRUE(epoch_.Evict(kv, Slots{1, 4, 5, 6}, {}));
  ASSERT_TRUE(epoch_.Seal());
  epoch_.Remove(kv);
  EXPECT_EQ(world_.pool().free(), 14u);
  EXPECT_EQ(epoch_.changes()[0].seq, nullptr);
  ASSERT_TRUE(epoch_.Commit());
  EXPECT_EQ(world_.pool().free(), 16u);
}

// The executor copies only at the fence: whoever reads before it reads a dead row, and is seen.
TEST_F(EpochTest, WithoutTheFenceAStaleRowIsRead) {
  SequenceKv kv(kOne);
  Write(kv, 8);
  ASSERT_TRUE(epoch_.Evict(kv, Slots{1, 4, 5, 6}, {}));
  ASSERT_TRUE(epoch_.Seal());
  ASSERT_TRUE(world_.Start(epoch_.groups()));
  ASSERT_TRUE(epoch_.Commit());
  EXPECT_EQ(kv.token(0, 1), 7u);
  EXPECT_NE(world_.row(kv, 0, 1), KvWorld::Tag(1, 7, 0));
}

TEST_F(EpochTest, AMaskedSequenceIsRepairedOnDemand) {
  SequenceKv kv({.block_size = 4, .scope = Scope::kLayer, .units = 2, .mode = Mode::kMasked});
  Write(kv, 8);
  ASSERT_TRUE(epoch_.Evict(kv, Slots{1, 4, 0, 7}, {}));
  Finish();
  EXPECT_EQ(epoch_.stats().moves, 0u);
  EXPECT_EQ(kv.active_length(), 8u);
  EXPECT_EQ(kv.live_tokens(), 6u);
  Write(kv, 1);
  EXPECT_EQ(Tokens(kv, 1), (Slots{1, 2, 3, 4, 5, 6, 8}));
  ASSERT_TRUE(epoch_.Repair(kv, {}));
  Finish();
  EXPECT_EQ(kv.active_length(), 7u);
  EXPECT_EQ(kv.table().size(), 2u);
  ExpectRows(kv);
}

TEST_F(EpochTest, ABudgetOfMovesRepairsAMaskedSequenceStepByStep) {
  SequenceKv kv({.block_size = 4, .mode = Mode::kMasked});
  Write(kv, 16);
  ASSERT_TRUE(epoch_.Evict(kv, Slots{0, 1, 2, 4, 5, 9, 13, 14}, {}));
  Finish();
  for (const uint32_t blocks : {3u, 2u}) {
    ASSERT_TRUE(epoch_.Repair(kv, {.moves_max = 2}));
    Finish();
    EXPECT_LE(epoch_.stats().moves, 2u);
    EXPECT_EQ(kv.table().size(), blocks);
    EXPECT_EQ(kv.live_tokens(), 8u);
    ExpectRows(kv);
  }
  Write(kv, 1);
  ExpectRows(kv);
}

// A host may fail at any call; whatever was planned then leaves no trace.
TEST_F(EpochTest, AHostErrorAtAnyCallLosesNoBlock) {
  int refused = 0;
  for (int good = 0; good < 40; ++good) {
    SequenceKv kv(kTwo);
    Write(kv, 14);
    SequenceKv other = *kv.Fork(world_);
    FailingHost host(world_, good);
    Epoch epoch(host);
    const bool done =
        epoch.Evict(kv, Slots{0, 5, 6, 9, 1, 2, 9, 12}, {.incoming = 1}) && epoch.Seal();
    refused += !done;
    ASSERT_TRUE(done ? epoch.Commit() : epoch.Abort());
    EXPECT_FALSE(kv.in_epoch());
    EXPECT_TRUE(kv.Release(world_) && other.Release(world_));
    ASSERT_EQ(world_.pool().free(), 16u) << good;
  }
  EXPECT_GT(refused, 5);
  EXPECT_LT(refused, 40);
}

TEST_F(EpochTest, RecordedVictimsCanBeReplayedOnAnotherLayout) {
  SequenceKv kv(kTwo), again({.block_size = 8, .scope = Scope::kLayer, .units = 2});
  KvWorld wide(4, 8, 2);
  Epoch wide_epoch(wide);
  ASSERT_TRUE(again.Reserve(wide, 20) && again.Append(12));
  VictimLog log;
  Write(kv, 12);
  for (const Slots& victims : {Slots{0, 3, 8, 7}, Slots{9, 2, 1, 0}}) {
    log.Record(kv, victims);
    ASSERT_TRUE(epoch_.Evict(kv, victims, {}));
    Finish();
  }
  for (uint32_t i = 0; i < log.rounds(); ++i) {
    EXPECT_EQ(log.round(i).logical_length, 12u);
    const auto slots = SlotsOf(again, log.round(i).tokens);
    ASSERT_TRUE(slots) << slots.error().what;
    ASSERT_TRUE(wide_epoch.Evict(again, *slots, {}) && wide_epoch.Seal() && wide_epoch.Commit());
  }
  for (uint32_t unit = 0; unit < 2; ++unit) {
    auto a = Tokens(kv, unit), b = Tokens(again, unit);
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    EXPECT_EQ(a, b);
  }
  EXPECT_FALSE(SlotsOf(again, log.round(0).tokens));  // they are gone
}

}  // namespace
}  // namespace hidane::vtoken
