#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "model/cpu.h"
#include "model/kernels.h"

/// Attention that does not see dead slots, on every instruction set that this CPU has.
namespace hidane::model {
namespace {

struct Target {
  Isa isa;
  bool bf16;
};
void PrintTo(const Target& t, std::ostream* out) {
  *out << IsaName(t.isa) << (t.bf16 ? "_bf16" : "_f32");
}

/// A sequence of `kBefore` slots in blocks that lie backwards, and the rows of a step behind them.
class MaskedAttention : public testing::TestWithParam<Target> {
 protected:
  static constexpr uint32_t kHeads = 6, kKvHeads = 2, kDim = 32, kBlock = 16;
  static constexpr uint32_t kBefore = 1300, kRows = 70, kWords = kBefore / 64 + 1;
  static constexpr uint32_t kWidth = kHeads * kDim, kKvWidth = kKvHeads * kDim;

  void SetUp() override {
    SetIsaCeiling(GetParam().isa);
    if (BestIsa() != GetParam().isa) GTEST_SKIP() << "this CPU has no " << IsaName(GetParam().isa);
    fast_ = MakeFastKernels(2, GetParam().bf16);
    reference_ = MakeReferenceKernels(GetParam().bf16);
    constexpr uint32_t kBlocks = (kBefore + kRows) / kBlock + 1;
    for (uint32_t i = 0; i < kBlocks; ++i) table_.push_back(BlockId(kBlocks - 1 - i));
    layout_ = {1, kKvHeads, kDim, kBlock, GetParam().bf16 ? 2u : 4u};
    k_.resize(kBlocks * layout_.block_bytes());
    v_ = k_;
    const AttentionSeq all{0, kBefore + kRows, 0, table_};
    const auto k = Floats(all.n_rows * kKvWidth), v = Floats(all.n_rows * kKvWidth);
    fast_->StoreKv({k.data(), kKvWidth}, {v.data(), kKvWidth}, {&all, 1}, layout_, layer());
    q_ = Floats(kRows * kWidth);
  }
  void TearDown() override { SetIsaCeiling(Isa::kAmx); }

  std::vector<float> Floats(size_t n) {
    std::vector<float> values(n);
    for (float& value : values) value = 2 * static_cast<float>(rng_.Unit()) - 1;
    return values;
  }
  KvLayer layer() { return {k_.data(), v_.data()}; }

  struct Answer {
    std::vector<float> out, lse;
    bool operator==(const Answer&) const = default;
  };
  Answer Attend(Kernels& kernels, uint32_t rows, std::span<const uint64_t> dead) {
    Answer answer{std::vector<float>(rows * kWidth), std::vector<float>(rows * kHeads)};
    const AttentionSeq seq{0, rows, kBefore, table_, {}, dead};
    kernels.Attention({q_.data(), kWidth}, kHeads, 0.2F, {&seq, 1}, layout_, layer(),
                      {answer.out.data(), kWidth}, answer.lse);
    return answer;
  }
  void ExpectTwins(uint32_t rows, std::span<const uint64_t> dead) {
    const Answer fast = Attend(*fast_, rows, dead), slow = Attend(*reference_, rows, dead);
    const double bound = GetParam().bf16 ? 0x1p-6 : (kDim + kBefore + kRows) * 0x1p-23;
    for (size_t i = 0; i < fast.out.size(); ++i)
      ASSERT_NEAR(fast.out[i], slow.out[i], bound) << "row " << i / kWidth;
    for (size_t i = 0; i < fast.lse.size(); ++i)
      ASSERT_NEAR(fast.lse[i], slow.lse[i], GetParam().bf16 ? 0.03 : 1e-4) << i;
  }

  Rng rng_{7};
  std::unique_ptr<Kernels> fast_, reference_;
  KvLayout layout_{};
  std::vector<BlockId> table_;
  std::vector<std::byte> k_, v_;
  std::vector<float> q_;
};

TEST_P(MaskedAttention, NoDeadSlotChangesNoBit) {
  const std::vector<uint64_t> none(kKvHeads * kWords, 0);
  for (const uint32_t rows : {1u, kRows})
    EXPECT_EQ(Attend(*fast_, rows, none), Attend(*fast_, rows, {}));
}

TEST_P(MaskedAttention, SeesWhatTheScalarTwinSees) {
  std::vector<uint64_t> dead(kKvHeads * kWords);
  for (uint64_t& word : dead) word = rng_.Next() & rng_.Next();
  for (uint32_t head = 0; head < kKvHeads; ++head) {
    dead[head * kWords + kWords - 1] &= (uint64_t{1} << kBefore % 64) - 1;
    dead[head * kWords + 3] = ~uint64_t{0};  // a whole tile
  }
  for (uint32_t word = 8; word < 16; ++word) dead[word] = ~uint64_t{0};  // a whole cut of head 0
  for (const uint32_t rows : {1u, 4u, kRows}) ExpectTwins(rows, dead);
}

TEST_P(MaskedAttention, OldSlotsMayAllBeDead) {
  std::vector<uint64_t> dead(kKvHeads * kWords, ~uint64_t{0});
  for (uint32_t head = 0; head < kKvHeads; ++head)
    dead[head * kWords + kWords - 1] = (uint64_t{1} << kBefore % 64) - 1;
  for (const uint32_t rows : {1u, kRows}) ExpectTwins(rows, dead);
}

/// A dead slot's score could only show if it were seen.
TEST_P(MaskedAttention, WhatADeadSlotHoldsIsNeverSeen) {
  std::vector<uint64_t> dead(kKvHeads * kWords, 0);
  constexpr uint32_t kDead = 700;
  for (uint32_t head = 0; head < kKvHeads; ++head)
    dead[head * kWords + kDead / 64] = uint64_t{1} << kDead % 64;
  for (const uint32_t rows : {1u, kRows}) {
    const Answer before = Attend(*fast_, rows, dead);
    const auto loud = std::vector<float>(kKvWidth, 50.0F);
    const AttentionSeq slot{0, 1, kDead, table_};
    fast_->StoreKv({loud.data(), kKvWidth}, {loud.data(), kKvWidth}, {&slot, 1}, layout_, layer());
    EXPECT_EQ(Attend(*fast_, rows, dead), before);
    EXPECT_NE(Attend(*fast_, rows, {}), before);
  }
}

constexpr Target kTargets[] = {
    {Isa::kAvx2, false}, {Isa::kAvx512, false}, {Isa::kAvx512Bf16, true}, {Isa::kAmx, true}};
INSTANTIATE_TEST_SUITE_P(Targets, MaskedAttention, testing::ValuesIn(kTargets),
                         [](const auto& target) { return testing::PrintToString(target.param); });

}  // namespace
}  // namespace hidane::model
