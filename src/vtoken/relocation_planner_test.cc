#include "vtoken/relocation_planner.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/rng.h"
#include "vtoken/relayout.h"

namespace hidane::vtoken {
namespace {

using Uses = std::vector<BlockUse>;

// "1101 0000 11" in blocks of 4: live slots are 1, the blanks are for the eye.
LiveSet Unit(uint32_t block_size, const std::string& picture) {
  std::string slots = picture;
  std::erase(slots, ' ');
  LiveSet set(block_size);
  set.AssignDense(static_cast<uint32_t>(slots.size()));
  for (uint32_t i = 0; i < slots.size(); ++i) {
    if (slots[i] == '0') set.Kill(i);
  }
  return set;
}

RelocationPlan PlanOf(const std::vector<LiveSet>& units, const Uses& uses = {},
                      uint32_t incoming = 0) {
  RelocationPlanner planner;
  RelocationPlan plan;
  planner.Plan({.units = units, .uses = uses, .incoming = incoming}, plan);
  return plan;
}

TEST(RelocationPlannerTest, FillsTheHolesOfTheFullestBlocks) {
  const auto plan = PlanOf({Unit(4, "1101 0100 1110 11")});
  EXPECT_EQ(plan.kept, (Vector<uint32_t>{0, 2, 3}));
  EXPECT_EQ(plan.freed, Vector<uint32_t>{1});
  EXPECT_EQ(plan.moves_bound, 2u);  // 9 tokens in 3 blocks: the tail has room for one
  EXPECT_EQ(plan.moves, (Vector<SlotMove>{{0, 5, 2}, {0, 13, 11}}));
}

TEST(RelocationPlannerTest, MovesNothingWhenNothingIsDead) {
  const auto plan = PlanOf({Unit(4, "1111 11")});
  EXPECT_TRUE(plan.moves.empty());
  EXPECT_TRUE(plan.KeepsOrder());
  EXPECT_TRUE(plan.freed.empty());
}

TEST(RelocationPlannerTest, FreesEverythingWhenNothingLives) {
  const auto plan = PlanOf({Unit(4, "0000 00")});
  EXPECT_EQ(plan.freed, (Vector<uint32_t>{0, 1}));
  EXPECT_TRUE(plan.kept.empty());
}

// One victim, and one token to come: it takes the dead slot, and no row is copied.
TEST(RelocationPlannerTest, TheIncomingTokenTakesTheDeadSlot) {
  const auto plan = PlanOf({Unit(4, "1111 1011 1111"), Unit(4, "0111 1111 1111")}, {}, 1);
  EXPECT_TRUE(plan.moves.empty());
  EXPECT_TRUE(plan.KeepsOrder());
  EXPECT_EQ(plan.incoming, (Vector<uint32_t>{5, 0}));
  EXPECT_EQ(plan.slots, 12u);
}

// The tail must be dense from its first slot on, so keeping the fullest blocks isn't enough.
TEST(RelocationPlannerTest, TheTailCostsMoreThanAFreeOneWould) {
  const auto plan = PlanOf({Unit(4, "1111 0011 0001")});
  EXPECT_EQ(plan.free_tail_bound, 1u);
  EXPECT_EQ(plan.moves_bound, 2u);
}

TEST(RelocationPlannerTest, APinnedBlockWithAHoleIsForcedOut) {
  const auto plan = PlanOf({Unit(4, "1110 1100")}, {BlockUse::kPinned, BlockUse::kOwn});
  EXPECT_EQ(plan.kept, (Vector<uint32_t>{1, 2}));  // 2 is fresh
  EXPECT_EQ(plan.fresh, 1u);
  EXPECT_EQ(plan.moves_bound, 3u);
}

TEST(RelocationPlannerTest, APinnedBlockWithoutHolesStays) {
  const auto plan =
      PlanOf({Unit(4, "1111 0100 11")}, {BlockUse::kPinned, BlockUse::kOwn, BlockUse::kPinned});
  EXPECT_EQ(plan.kept, (Vector<uint32_t>{0, 2}));
  EXPECT_EQ(plan.moves, (Vector<SlotMove>{{0, 5, 10}}));
}

TEST(RelocationPlannerTest, ASharedTailIsNotWrittenEvenBehindItsTokens) {
  const auto plan = PlanOf({Unit(4, "1111 11")}, {BlockUse::kOwn, BlockUse::kShared});
  EXPECT_EQ(plan.kept, (Vector<uint32_t>{0, 2}));
  EXPECT_EQ(plan.moves_bound, 2u);
}

TEST(RelocationPlannerTest, APartialPlanFreesTheEmptiestBlocksWithinItsBudget) {
  RelocationPlanner planner;
  RelocationPlan plan;
  const std::vector<LiveSet> units{Unit(4, "1101 0100 1010 1000 1111 01")};
  const auto freed = [&](uint64_t moves_max) {
    planner.PlanPartial({.units = units}, moves_max, plan);
    EXPECT_LE(plan.moves.size(), moves_max);
    return plan.freed;
  };
  EXPECT_EQ(freed(0), Vector<uint32_t>{});
  EXPECT_EQ(freed(1), Vector<uint32_t>{5});
  EXPECT_EQ(plan.moves, (Vector<SlotMove>{{0, 21, 2}}));
  EXPECT_EQ(plan.slots, 20u);
  EXPECT_EQ(freed(2), (Vector<uint32_t>{3, 5}));
  EXPECT_EQ(freed(100), (Vector<uint32_t>{1, 3, 5}));  // no holes for more
  EXPECT_EQ(plan.slots, 12u);
}

// --- The optimum, by trying everything ----------------------------------------------------------

struct Best {
  uint32_t fresh = UINT32_MAX;
  uint64_t moves = 0;
};

class BruteForce {
 public:
  BruteForce(const std::vector<LiveSet>& units, const Uses& uses, uint32_t incoming)
      : units_(units), uses_(uses), incoming_(incoming) {}

  Best Find() {
    const uint32_t size = units_[0].block_size();
    const uint32_t slots = units_[0].count() + incoming_;
    stay_ = (slots + size - 1) / size;
    if (stay_ == 0) return {0, 0};
    tail_width_ = slots - (stay_ - 1) * size;
    Try(0, 0, false, 0);
    return best_;
  }

 private:
  // May `block` hold the first `width` slots of the new table's block?
  bool Allowed(uint32_t block, uint32_t width) const {
    const BlockUse use = uses_.empty() ? BlockUse::kOwn : uses_[block];
    const uint32_t size = units_[0].block_size();
    if (use == BlockUse::kOwn) return true;
    if (use == BlockUse::kShared && width < size) return false;
    for (const LiveSet& unit : units_) {
      for (uint32_t i = 0; i < size; ++i) {
        const uint32_t slot = block * size + i;
        const bool spanned = slot < unit.slots();
        if (use == BlockUse::kShared && !(spanned && unit.live(slot))) return false;
        if (spanned && (i >= width || !unit.live(slot))) return false;
      }
    }
    return true;
  }
  uint64_t Gain(uint32_t block, uint32_t width) const {
    uint64_t gain = 0;
    for (const LiveSet& unit : units_) gain += unit.CountFirst(block, width);
    return gain;
  }
  void Try(uint32_t block, uint32_t used, bool has_tail, uint64_t gain) {
    if (used > stay_) return;
    if (block == units_[0].blocks()) {
      if (used == stay_ && !has_tail) return;
      const uint64_t all = uint64_t{units_[0].count()} * units_.size();
      const Best found{stay_ - used, all - gain};
      if (std::tie(found.fresh, found.moves) < std::tie(best_.fresh, best_.moves)) best_ = found;
      return;
    }
    const uint32_t size = units_[0].block_size();
    Try(block + 1, used, has_tail, gain);
    if (used + (has_tail ? 0 : 1) < stay_ + (has_tail ? 0 : 1) && Allowed(block, size)) {
      Try(block + 1, used + 1, has_tail, gain + Gain(block, size));
    }
    if (!has_tail && Allowed(block, tail_width_)) {
      Try(block + 1, used + 1, true, gain + Gain(block, tail_width_));
    }
  }

  const std::vector<LiveSet>& units_;
  const Uses& uses_;
  uint32_t incoming_, stay_ = 0, tail_width_ = 0;
  Best best_;
};

// Names the first thing that is wrong with carrying out `plan`, or "".
std::string CarryOut(const std::vector<LiveSet>& units, const Uses& uses, uint32_t incoming,
                     const RelocationPlan& plan) {
  const uint32_t size = units[0].block_size();
  std::set<uint32_t> blocks(plan.kept.begin(), plan.kept.end());
  blocks.insert(plan.freed.begin(), plan.freed.end());
  if (blocks.size() != plan.blocks + plan.fresh ||
      plan.kept.size() + plan.freed.size() != blocks.size()) {
    return "a block is neither kept nor freed, or both";
  }
  std::set<std::pair<uint32_t, uint32_t>> touched;
  for (const SlotMove& move : plan.moves) {
    const LiveSet& unit = units[move.unit];
    if (move.from >= unit.slots() || !unit.live(move.from)) return "a source is dead";
    if (move.to < unit.slots() && unit.live(move.to)) return "a destination is alive";
    if (!touched.emplace(move.unit, move.from).second) return "a source twice";
    if (!touched.emplace(move.unit, move.to).second) return "a destination twice";
    const uint32_t b = move.to / size;
    if (!uses.empty() && b < plan.blocks && uses[b] != BlockUse::kOwn &&
        (uses[b] == BlockUse::kShared || move.to < unit.slots())) {
      return "a block is written that may not be";
    }
  }
  for (uint32_t u = 0; u < units.size(); ++u) {
    std::vector<int64_t> tags(units[u].slots(), -1), scratch;
    std::multiset<int64_t> before, after;
    for (uint32_t slot = 0; slot < tags.size(); ++slot) {
      if (units[u].live(slot)) before.insert(tags[slot] = slot);
    }
    tags.resize((plan.blocks + plan.fresh) * size, -1);
    Relayout(plan, u, size, tags, scratch);
    if (incoming == 1) {
      if (plan.incoming[u] >= plan.slots) return "the open slot is out of reach";
      tags.erase(tags.begin() + plan.incoming[u]);
    }
    after.insert(tags.begin(), tags.end());
    if (before != after) return "a token is lost, doubled or not below the active length";
  }
  return "";
}

std::string Judge(const std::vector<LiveSet>& units, const Uses& uses, uint32_t incoming) {
  const RelocationPlan plan = PlanOf(units, uses, incoming);
  const Best best = BruteForce(units, uses, incoming).Find();
  if (plan.moves.size() != plan.moves_bound) return "moves are not the bound";
  if (plan.fresh != best.fresh) return "too many fresh blocks";
  if (plan.moves_bound != best.moves) return "not the fewest moves";
  if (uses.empty() && plan.free_tail_bound > plan.moves_bound) return "free-tail bound too large";
  return CarryOut(units, uses, incoming, plan);
}

LiveSet FromBits(uint32_t size, uint32_t slots, uint32_t bits) {
  LiveSet set(size);
  set.AssignDense(slots);
  for (uint32_t i = 0; i < slots; ++i) {
    if ((bits >> i & 1) == 0) set.Kill(i);
  }
  return set;
}

// Every live map of up to 4 blocks of up to 4 slots, with and without an incoming token.
TEST(RelocationPlannerTest, IsOptimalForEverySmallLiveMap) {
  for (uint32_t size = 1; size <= 4; ++size) {
    for (uint32_t slots = 1; slots <= 4 * size && slots <= 14; ++slots) {
      for (uint32_t bits = 0; bits < 1u << slots; ++bits) {
        const std::vector<LiveSet> units{FromBits(size, slots, bits)};
        ASSERT_EQ(Judge(units, {}, bits % 2), "") << size << " " << slots << " " << bits;
        ASSERT_EQ(Judge(units, {}, 1 - bits % 2), "") << size << " " << slots << " " << bits;
      }
    }
  }
}

TEST(RelocationPlannerTest, IsOptimalForEverySmallPairOfUnits) {
  for (uint32_t slots = 1; slots <= 6; ++slots) {
    for (uint32_t a = 0; a < 1u << slots; ++a) {
      for (uint32_t b = 0; b < 1u << slots; ++b) {
        if (std::popcount(a) != std::popcount(b)) continue;
        const std::vector<LiveSet> units{FromBits(2, slots, a), FromBits(2, slots, b)};
        ASSERT_EQ(Judge(units, {}, 0), "") << slots << " " << a << " " << b;
        ASSERT_EQ(Judge(units, {}, 1), "") << slots << " " << a << " " << b;
      }
    }
  }
}

TEST(RelocationPlannerTest, IsOptimalForEverySmallMixOfUses) {
  for (uint32_t slots = 1; slots <= 6; ++slots) {
    const uint32_t blocks = (slots + 1) / 2;
    for (uint32_t bits = 0; bits < 1u << slots; ++bits) {
      for (uint32_t mix = 0; mix < 27; ++mix) {
        Uses uses;
        for (uint32_t b = 0, m = mix; b < blocks; ++b, m /= 3) uses.push_back(BlockUse(m % 3));
        const std::vector<LiveSet> units{FromBits(2, slots, bits)};
        ASSERT_EQ(Judge(units, uses, 0), "") << slots << " " << bits << " " << mix;
        ASSERT_EQ(Judge(units, uses, 1), "") << slots << " " << bits << " " << mix;
      }
    }
  }
}

// Units of equal count, each with its own holes.
std::vector<LiveSet> RandomUnits(Rng& rng, uint32_t size, uint32_t slots, uint32_t n) {
  std::vector<LiveSet> units(n, LiveSet(size));
  const auto live = static_cast<uint32_t>(rng.Below(slots + 1));
  for (LiveSet& unit : units) {
    unit.AssignDense(slots);
    while (unit.count() > live) unit.Kill(static_cast<uint32_t>(rng.Below(slots)));
  }
  return units;
}

RC_GTEST_PROP(RelocationPlannerProps, IsOptimalAndLosesNoToken, ()) {
  Rng rng(*rc::gen::arbitrary<uint64_t>());
  const auto size = 1 + static_cast<uint32_t>(rng.Below(4));
  const auto slots = 1 + static_cast<uint32_t>(rng.Below(size * 4));
  const auto units = RandomUnits(rng, size, slots, 1 + static_cast<uint32_t>(rng.Below(3)));
  Uses uses;
  for (uint32_t b = 0; rng.Below(2) == 1 && b < units[0].blocks(); ++b) uses.push_back({});
  if (!uses.empty()) {
    uses.resize(units[0].blocks());
    for (BlockUse& use : uses) use = BlockUse(rng.Below(3));
  }
  RC_ASSERT(Judge(units, uses, static_cast<uint32_t>(rng.Below(2))) == "");
}

RC_GTEST_PROP(RelocationPlannerProps, LargePlansAreConsistent, ()) {
  Rng rng(*rc::gen::arbitrary<uint64_t>());
  const auto size = *rc::gen::element(1u, 5u, 16u, 32u, 48u, 64u, 100u, 128u, 256u);
  const auto slots = 1 + static_cast<uint32_t>(rng.Below(2000));
  const auto units = RandomUnits(rng, size, slots, 1 + static_cast<uint32_t>(rng.Below(4)));
  Uses uses(rng.Below(2) * units[0].blocks());
  for (BlockUse& use : uses) use = BlockUse(rng.Below(3));
  const auto incoming = static_cast<uint32_t>(rng.Below(2));
  const RelocationPlan plan = PlanOf(units, uses, incoming);
  RC_ASSERT(CarryOut(units, uses, incoming, plan) == "");
  RC_ASSERT(plan.moves.size() == plan.moves_bound);
  RC_ASSERT(plan.kept.size() == (plan.slots + size - 1) / size);
  if (uses.empty() && incoming == 0) RC_ASSERT(plan.kept.size() <= plan.blocks);
}

RC_GTEST_PROP(RelocationPlannerProps, ADensePlanIsItsOwnFixedPoint, ()) {
  Rng rng(*rc::gen::arbitrary<uint64_t>());
  const auto units = RandomUnits(rng, 16, 1 + static_cast<uint32_t>(rng.Below(500)), 2);
  const RelocationPlan plan = PlanOf(units);
  std::vector<LiveSet> after(2, LiveSet(16));
  for (LiveSet& unit : after) unit.AssignDense(plan.slots);
  const RelocationPlan again = PlanOf(after);
  RC_ASSERT(again.moves.empty());
  RC_ASSERT(again.KeepsOrder());
}

}  // namespace
}  // namespace hidane::vtoken
