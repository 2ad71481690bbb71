#include "vtoken/signal_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "vtoken/recorded_attention.h"
#include "vtoken/relayout.h"

namespace hidane::vtoken {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr HeadShape kShape{.layers = 2, .q_heads = 4, .kv_heads = 2};
const SignalSet kAll{Signal::kColumnSum, Signal::kLowCount, Signal::kLastRow, Signal::kWindowSum};
constexpr uint32_t kNever = UINT32_MAX;

PolicyTraits Traits(Scope scope, uint32_t window = 8) {
  return {.signals = kAll, .scope = scope, .window_rows = window};
}

/// Everything that was added, one array after the other.
std::vector<float> Contents(const SignalStore& store, uint32_t slots) {
  std::vector<float> all;
  for (const Signal s :
       {Signal::kColumnSum, Signal::kLowCount, Signal::kLastRow, Signal::kWindowSum})
    for (uint32_t layer = 0; layer < kShape.layers; ++layer)
      for (uint32_t head = 0; head < kShape.q_heads; ++head) {
        const auto row = store.Row(s, layer, head);
        if (!row.empty()) all.insert(all.end(), row.begin(), row.begin() + slots);
      }
  return all;
}

/// The store after positions [from, to) were computed in chunks of `chunk`.
SignalStore Computed(uint32_t from, uint32_t to, uint32_t chunk, uint32_t origin,
                     uint32_t next_run) {
  SignalStore store(kShape, Traits(Scope::kKvHead), origin);
  const RecordedAttention attention{kShape};
  for (uint32_t first = from; first < to; first += chunk) {
    const uint32_t n = std::min(chunk, to - first);
    store.Reserve(first + n);
    attention.Add(store.Step(first, n, next_run), first, n);
  }
  return store;
}

/// Writes slot + 100 * row into every array, so that each entry names its place.
void Tag(SignalStore& store) {
  const StepSignals step = store.Step(0, 1, 1);
  for (float* array : {step.column_sum, step.low_count, step.last_row, step.window_sum})
    for (uint32_t row = 0; array && row < kShape.layers * kShape.q_heads; ++row)
      for (uint32_t slot = 0; slot < store.slots(); ++slot)
        array[row * step.stride + slot] = static_cast<float>(100 * row + slot);
}

TEST(SignalStoreTest, NothingIsKeptThatNobodyDeclared) {
  SignalStore none(kShape, {.signals = {Signal::kKeyRows}}, 0);
  none.Reserve(1000);
  EXPECT_EQ(none.slots(), 0u);
  EXPECT_FALSE(none.Step(0, 4, 4).wanted());

  SignalStore one(kShape, {.signals = {Signal::kLastRow}}, 0);
  one.Reserve(8);
  const StepSignals step = one.Step(0, 4, 4);
  EXPECT_TRUE(step.last_row != nullptr && step.column_sum == nullptr && step.low_count == nullptr &&
              step.window_sum == nullptr);
  EXPECT_TRUE(one.Row(Signal::kColumnSum, 0, 0).empty());
}

// Issue 5's determinism on the store: to the bit.
TEST(SignalStoreTest, AnyChunkSizeGivesTheSameSignals) {
  const auto whole = Contents(Computed(0, 200, 2048, 40, 200), 200);
  for (const uint32_t chunk : {1u, 7u, 64u, 199u})
    EXPECT_EQ(Contents(Computed(0, 200, chunk, 40, 200), 200), whole) << chunk;
}

TEST(SignalStoreTest, AColdAndAWarmCacheGiveTheSameSignals) {
  const auto cold = Contents(Computed(0, 200, 64, 40, 200), 200);
  for (const uint32_t hit : {16u, 32u, 40u})  // a hit may reach up to the origin
    EXPECT_EQ(Contents(Computed(hit, 200, 64, 40, 200), 200), cold) << hit;
  EXPECT_NE(Contents(Computed(41, 200, 64, 40, 200), 200), cold) << "the test sees a missing row";
}

TEST(SignalStoreTest, RowsBeforeTheOriginDoNotCount) {
  SignalStore store(kShape, Traits(Scope::kKvHead), 10);
  store.Reserve(32);
  EXPECT_EQ(store.Step(0, 8, kNever).count_from, 8u);   // all before
  EXPECT_EQ(store.Step(8, 8, kNever).count_from, 2u);   // positions 8, 9 before
  EXPECT_EQ(store.Step(16, 8, kNever).count_from, 0u);  // none before
}

TEST(SignalStoreTest, TheWindowIsTheLastRowsBeforeTheRun) {
  SignalStore store(kShape, Traits(Scope::kKvHead, 8), 0);
  store.Reserve(128);
  EXPECT_EQ(store.Step(0, 64, 100).window_from, 64u);  // window = [92, 100)
  EXPECT_EQ(store.Step(64, 36, 100).window_from, 28u);
  EXPECT_EQ(store.Step(95, 1, 100).window_from, 0u);
  EXPECT_EQ(store.Step(10, 4, kNever).window_from, 4u);  // no run ahead: no row
  EXPECT_EQ(store.Step(0, 4, 4).window_from, 0u);        // fewer rows than the window
}

TEST(SignalStoreTest, TheNextWindowStartsAtZero) {
  SignalStore store = Computed(0, 20, 20, 0, 20);
  const auto sums = Contents(store, 20);
  store.RunDone();
  EXPECT_THAT(store.Row(Signal::kWindowSum, 1, 3), Each(0.0F));
  EXPECT_EQ(store.Row(Signal::kColumnSum, 0, 0)[5], sums[5]) << "column sums go on";
}

TEST(SignalStoreTest, GrowingKeepsWhatIsThereAndAddsZeros) {
  SignalStore store = Computed(0, 10, 10, 0, 10);
  const auto before = Contents(store, 10);
  store.Reserve(500);
  EXPECT_GE(store.slots(), 500u);
  EXPECT_EQ(Contents(store, 10), before);
  EXPECT_EQ(store.Row(Signal::kColumnSum, 1, 2)[499], 0);
}

TEST(SignalStoreTest, AMoveTakesTheHeadsOfItsUnitAlong) {
  for (const Scope scope : {Scope::kSequence, Scope::kLayer, Scope::kKvHead}) {
    SignalStore store(kShape, Traits(scope), 0);
    store.Reserve(8);
    Tag(store);
    const uint32_t unit = UnitCount(scope, kShape) - 1;
    store.Move(unit, 5, 2);
    // Rows of the last unit: all 8; those of layer 1 (4-7); those of layer 1, KV head 1 (6, 7).
    const uint32_t first = scope == Scope::kSequence ? 0 : scope == Scope::kLayer ? 4 : 6;
    for (uint32_t row = 0; row < 8; ++row)
      EXPECT_EQ(store.Row(Signal::kLastRow, row / 4, row % 4)[2],
                static_cast<float>(100 * row + (row >= first ? 5 : 2)))
          << "scope " << static_cast<int>(scope) << " row " << row;
  }
}

TEST(SignalStoreTest, ASlotThatIsReusedOrCutOffStartsAtZero) {
  SignalStore store(kShape, Traits(Scope::kLayer), 0);
  store.Reserve(4);
  Tag(store);
  store.Clear(1, 2);
  EXPECT_THAT(store.Row(Signal::kColumnSum, 1, 0), ElementsAre(400, 401, 0, 403));
  EXPECT_THAT(store.Row(Signal::kColumnSum, 0, 0), ElementsAre(0, 1, 2, 3));
  store.Truncate(1);
  EXPECT_THAT(store.Row(Signal::kColumnSum, 1, 0), ElementsAre(400, 0, 0, 0));
  EXPECT_THAT(store.Row(Signal::kLowCount, 0, 3), ElementsAre(300, 0, 0, 0));
}

// Two units (layers), block size 2, six slots; slot 0 dies in both, slots 2 and 3 in layer 0 only,
// and so on: the planner decides, and each token's signals must be where it says the token is.
TEST(SignalStoreTest, FollowsAPlanLikeTheTokensThemselves) {
  for (const uint32_t incoming : {0u, 1u}) {
    SignalStore store(kShape, Traits(Scope::kLayer), 0);
    store.Reserve(7);
    Tag(store);
    std::vector<LiveSet> live(2, LiveSet(2));
    for (LiveSet& unit : live) unit.AssignDense(6);
    for (const uint32_t slot : {0u, 2u, 3u}) live[0].Kill(slot);
    for (const uint32_t slot : {0u, 1u, 4u}) live[1].Kill(slot);
    RelocationPlan plan;
    RelocationPlanner().Plan({.units = live, .incoming = incoming}, plan);
    ASSERT_EQ(plan.slots, 3 + incoming);
    std::vector<std::vector<float>> expected(2, {0, 1, 2, 3, 4, 5});
    std::vector<float> scratch;
    for (uint32_t layer = 0; layer < 2; ++layer) {
      Relayout(plan, layer, 2, expected[layer], scratch);
      for (float& slot : expected[layer]) slot += static_cast<float>(400 * layer);
      if (incoming) expected[layer][plan.incoming[layer]] = 0;
    }
    store.Follow(plan, 2);
    for (uint32_t layer = 0; layer < 2; ++layer) {
      const auto row = store.Row(Signal::kLastRow, layer, 0);
      EXPECT_THAT(row.first(plan.slots), ElementsAreArray(expected[layer]));
      EXPECT_THAT(row.subspan(plan.slots), Each(0.0F)) << "a token appended there starts at zero";
    }
  }
}

TEST(SignalStoreTest, ACopyIsAForkOfItsOwn) {
  SignalStore parent = Computed(0, 10, 10, 0, 10);
  SignalStore fork = parent;
  fork.Truncate(0);
  EXPECT_NE(Contents(parent, 10), Contents(fork, 10));
}

TEST(SignalStoreTest, TheOriginDependsOnTheRequestAlone) {
  EXPECT_EQ(OriginPosition(Origin::kMark, 100, 40, 8), 40u);
  EXPECT_EQ(OriginPosition(Origin::kWindow, 100, 40, 8), 92u);
  EXPECT_EQ(OriginPosition(Origin::kWindow, 5, 0, 8), 0u);
  EXPECT_EQ(OriginPosition(Origin::kPromptEnd, 100, 40, 8), 100u);
}

}  // namespace
}  // namespace hidane::vtoken
