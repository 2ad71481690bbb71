#include "model/slot_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "model/cpu.h"
#include "model/dequantize.h"
#include "model/kernels.h"
#include "model/model.h"
#include "model/tiny_model.h"

namespace hidane::model {
namespace {

struct Set {
  const char* name;
  bool bf16, reference;
  uint32_t threads;
};
void PrintTo(const Set& set, std::ostream* out) {
  *out << set.name;
}
constexpr Set kSets[] = {{"ref_f32", false, true, 1},
                         {"ref_bf16", true, true, 1},
                         {"fast_f32", false, false, 1},
                         {"fast_f32_threads", false, false, 3},
                         {"fast_bf16", true, false, 2}};
const auto kName = [](const auto& test) { return std::string(test.param.name); };

bool Missing(const Set& set) {
  return set.bf16 && !set.reference && !CpuMultipliesBf16();
}

/// One layer's memory of one sequence, and the definition: softmax over the K rows that lie there.
class SignalKernel : public testing::TestWithParam<Set> {
 protected:
  static constexpr uint32_t kDim = 32, kKvHeads = 2, kHeads = 6;

  void SetUp() override {
    if (Missing(GetParam())) GTEST_SKIP() << "this CPU has no bf16 dot products";
    kernels_ = GetParam().reference ? MakeReferenceKernels(GetParam().bf16)
                                    : MakeFastKernels(GetParam().threads, GetParam().bf16);
  }

  // `before` slots are filled, then `rows` rows come, of which the queries are kept.
  void Fill(uint32_t before, uint32_t rows, uint32_t block_size) {
    layout_ = {1, kKvHeads, kDim, block_size, GetParam().bf16 ? 2u : 4u};
    const uint32_t blocks = (before + rows) / block_size + 1;
    for (uint32_t i = 0; i < blocks; ++i) table_.push_back(BlockId(blocks - 1 - i));
    k_.assign(blocks * layout_.block_bytes(), std::byte{0xFF});
    v_ = k_;
    seq_ = {1, rows, before, table_};  // another sequence's row comes first
    const AttentionSeq all{0, before + rows, 0, table_};
    const auto values = Random((before + rows) * kKvHeads * kDim, 1);
    kernels_->StoreKv({values.data(), kKvHeads * kDim}, {values.data(), kKvHeads * kDim}, {&all, 1},
                      layout_, {k_.data(), v_.data()});
    q_ = Random((rows + 1) * kHeads * kDim, 3);
  }

  std::vector<float> Random(size_t n, float scale) {
    std::vector<float> values(n);
    for (float& x : values) x = scale * (2 * static_cast<float>(rng_.Unit()) - 1);
    return values;
  }

  void Run(const SlotSignals& out) {
    const ConstRows q{q_.data(), kHeads * kDim};
    std::vector<float> mixed(q_.size()), lse((seq_.n_rows + 1) * kHeads);
    kernels_->Attention(q, kHeads, kScale, {&seq_, 1}, layout_, {k_.data(), v_.data()},
                        {mixed.data(), kHeads * kDim}, lse);
    kernels_->Signals(q, kHeads, kScale, seq_, layout_, {k_.data(), v_.data()}, lse, out);
  }

  float Key(uint32_t slot, uint32_t kv_head, uint32_t d) const {
    const uint32_t b = layout_.block_size;
    const std::byte* row =
        k_.data() + layout_.RowOffset(table_[slot / b].value(), kv_head, slot % b);
    if (GetParam().bf16) return Bf16ToFloat(reinterpret_cast<const uint16_t*>(row)[d]);
    return reinterpret_cast<const float*>(row)[d];
  }

  /// p of one row over the slots that it reads.
  std::vector<double> Naive(uint32_t row, uint32_t head) const {
    std::vector<double> p(seq_.active_length + row + 1);
    double sum = 0;
    for (uint32_t slot = 0; slot < p.size(); ++slot) {
      double dot = 0;
      for (uint32_t d = 0; d < kDim; ++d) {
        dot += double{q_[((seq_.first_row + row) * kHeads + head) * kDim + d]} *
               double{Key(slot, head / (kHeads / kKvHeads), d)};
      }
      sum += p[slot] = std::exp(dot * kScale);
    }
    for (double& x : p) x /= sum;
    return p;
  }

  static constexpr float kScale = 0.1767767F;
  Rng rng_{3};
  std::unique_ptr<Kernels> kernels_;
  KvLayout layout_;
  std::vector<BlockId> table_;
  std::vector<std::byte> k_, v_;
  std::vector<float> q_;
  AttentionSeq seq_;
};

TEST_P(SignalKernel, SumsAreThoseOfTheSoftmaxWrittenOut) {
  for (const auto& [before, rows, block] :
       {std::array{0u, 1u, 16u}, {700u, 1u, 16u}, {30u, 90u, 7u}, {505u, 140u, 64u}}) {
    table_.clear();
    Fill(before, rows, block);
    const uint32_t slots = before + rows, stride = slots + 5;
    std::vector<float> mass(kHeads * stride, 0.5F), window(mass), below(mass), last(mass.size());
    const uint32_t window_from = rows - std::min(rows, 8u), below_from = rows / 3;
    Run({stride, {mass, 0}, {window, window_from}, {below, below_from}, 0.7F, last});
    const double tolerance = GetParam().bf16 ? 0x1p-6 : 1e-5;
    for (uint32_t head = 0; head < kHeads; ++head) {
      std::vector<double> want_mass(stride, 0.5), want_window(want_mass), want_below(want_mass);
      std::vector<double> slack(stride, 0), want_last(stride, 0);
      for (uint32_t row = 0; row < rows; ++row) {
        const auto p = Naive(row, head);
        const double threshold = 0.7 / static_cast<double>(p.size());
        for (uint32_t s = 0; s < p.size(); ++s) {
          want_mass[s] += p[s];
          if (row >= window_from) want_window[s] += p[s];
          if (row >= below_from) want_below[s] += p[s] < threshold;
          slack[s] += std::abs(p[s] - threshold) < tolerance;  // could fall on either side
          if (row + 1 == rows) want_last[s] = p[s];
        }
      }
      for (uint32_t s = 0; s < stride; ++s) {
        const size_t at = head * stride + s;
        ASSERT_NEAR(mass[at], want_mass[s], tolerance * (1 + rows)) << head << " " << s;
        ASSERT_NEAR(window[at], want_window[s], tolerance * 9) << head << " " << s;
        ASSERT_NEAR(below[at], want_below[s], slack[s]) << head << " " << s;
        ASSERT_NEAR(last[at], want_last[s], tolerance) << head << " " << s;
      }
    }
  }
}

TEST_P(SignalKernel, WhatIsNotAskedForIsNotTouched) {
  Fill(20, 5, 4);
  std::vector<float> window(kHeads * 25, 0);
  Run({25, {}, {window, 5}, {}, 1, {}});  // from past the last row: none counts
  EXPECT_EQ(window, std::vector<float>(window.size(), 0));
  Run({25, {}, {window, 4}, {}, 1, {}});
  for (uint32_t head = 0; head < kHeads; ++head) {
    double sum = 0;
    for (uint32_t s = 0; s < 25; ++s) sum += window[head * 25 + s];
    EXPECT_NEAR(sum, 1, 0.02);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SignalKernel, testing::ValuesIn(kSets), kName);

/// The same through Forward, on the tiny model.
class SignalGraph : public testing::TestWithParam<Set> {
 protected:
  void SetUp() override {
    if (Missing(GetParam())) GTEST_SKIP() << "this CPU has no bf16 dot products";
    path_ = testing::TempDir() + "slot_signals_test." + std::to_string(::getpid()) + ".gguf";
    std::ofstream(path_, std::ios::binary) << TinyModel{}.Build();
    auto loaded =
        Model::Load(path_, {.precision = GetParam().bf16 ? Precision::kBf16 : Precision::kF32,
                            .block_size = 4,
                            .kv_blocks = 64,
                            .threads = GetParam().threads,
                            .step_tokens_max = 128,
                            .reference_kernels = GetParam().reference});
    ASSERT_TRUE(loaded) << loaded.error().what;
    model_ = std::move(*loaded);
    for (uint32_t i = 0; i < 64; ++i) table_.push_back(BlockId(i ^ 1));
    for (uint32_t i = 0; i < kTokens; ++i) tokens_.push_back(static_cast<TokenId>(i * 37 % 96));
  }
  void TearDown() override { std::filesystem::remove(path_); }

  struct Sums {
    std::vector<float> mass, window, below, last;
    std::vector<float> logits;
    bool operator==(const Sums&) const = default;
  };
  /// Mass counts from kOrigin on, the window is the last 8 rows.
  Sums Feed(uint32_t chunk, bool ask = true) {
    const size_t size = size_t{model_->info().layers} * model_->info().heads * kTokens;
    Sums sums{std::vector<float>(size), std::vector<float>(size), std::vector<float>(size),
              std::vector<float>(size), std::vector<float>(model_->info().vocab_size)};
    for (uint32_t at = 0; at < kTokens; at += chunk) {
      const uint32_t n = std::min(chunk, kTokens - at);
      const auto from = [&](uint32_t position) { return position - std::min(position, at); };
      const SlotSignals signals{kTokens,
                                {sums.mass, from(kOrigin)},
                                {sums.window, from(kTokens - 8)},
                                {sums.below, from(kOrigin)},
                                1,
                                sums.last};
      const bool is_last = at + n == kTokens;
      const SeqSlice slice{n, at, at, table_, is_last, ask ? &signals : nullptr};
      model_->Forward({std::span(tokens_).subspan(at, n), {&slice, 1}},
                      is_last ? std::span(sums.logits) : std::span<float>());
    }
    return sums;
  }

  static constexpr uint32_t kTokens = 100, kOrigin = 13;
  std::string path_;
  std::unique_ptr<Model> model_;
  std::vector<BlockId> table_;
  std::vector<TokenId> tokens_;
};

TEST_P(SignalGraph, EveryRowThatCountsGivesOneInEachHead) {
  const Sums sums = Feed(100);
  const size_t heads = size_t{model_->info().layers} * model_->info().heads;
  for (size_t head = 0; head < heads; ++head) {
    const auto total = [&](const std::vector<float>& of) {
      double sum = 0;
      for (uint32_t s = 0; s < kTokens; ++s) sum += of[head * kTokens + s];
      return sum;
    };
    const double tolerance = GetParam().bf16 ? 0.02 : 1e-4;
    EXPECT_NEAR(total(sums.mass), kTokens - kOrigin, tolerance * kTokens);
    EXPECT_NEAR(total(sums.window), 8, tolerance * 8);
    EXPECT_NEAR(total(sums.last), 1, tolerance);
    EXPECT_GT(total(sums.below), kTokens - kOrigin);
  }
}

TEST_P(SignalGraph, ChunksOfAnySizeGiveTheSameBitsInF32) {
  if (GetParam().bf16) GTEST_SKIP() << "promised for f32";
  const Sums whole = Feed(100);
  for (const uint32_t chunk : {1u, 7u, 64u}) EXPECT_EQ(Feed(chunk), whole) << chunk;
}

TEST_P(SignalGraph, AskingChangesNoLogit) {
  const Sums asked = Feed(33), silent = Feed(33, false);
  if (!GetParam().bf16) {
    EXPECT_EQ(asked.logits, silent.logits);
  }
  for (size_t i = 0; i < asked.logits.size(); ++i) {
    EXPECT_NEAR(asked.logits[i], silent.logits[i], 0.15) << i;
  }
}

// A new token in the place of a dead one: the same set of K and V as behind the others.
TEST_P(SignalGraph, ATokenWrittenToADeadSlotIsReadThere) {
  Feed(60);
  const ModelInfo& m = model_->info();
  const size_t units = size_t{m.layers} * m.kv_heads;
  std::vector<uint32_t> write(units, 7);
  write[1] = 20;  // each kv head has its own
  const auto slot = [&](uint32_t i) { return table_[i / 4].value() * 4 + i % 4; };
  const auto decode = [&](std::span<const uint32_t> slots) {
    std::vector<float> logits(m.vocab_size);
    const SeqSlice slice{1, 60, 59, table_, true, nullptr, slots};
    model_->Forward({std::span(tokens_).subspan(60, 1), {&slice, 1}}, logits);
    return logits;
  };
  // Slot 59 is live, and the dead token's slot is taken in; or the other way round.
  std::vector<RowMove> swap;
  for (uint32_t u = 0; u < units; ++u) swap.push_back({u, slot(59), slot(write[u])});
  const auto reused = [&] {
    const auto logits = decode(write);
    Feed(60);
    return logits;
  }();
  model_->MoveRows(KvUnit::kKvHead, swap);
  const auto behind = decode({});
  for (uint32_t i = 0; i < m.vocab_size; ++i) {
    EXPECT_NEAR(reused[i], behind[i], GetParam().bf16 ? 0.3 : 1e-3) << i;
  }
}

// Reference B: slots that no kv head of a layer reads are as if they had never been.
TEST_P(SignalGraph, DeadSlotsAreNotRead) {
  if (!GetParam().reference) GTEST_SKIP() << "only the scalar set has masks";
  Feed(60);
  const ModelInfo& m = model_->info();
  std::vector<uint64_t> dead(m.layers * m.kv_heads * 2, 1u << 5 | 1u << 11);
  const auto decode = [&](uint32_t length, std::span<const uint64_t> mask) {
    std::vector<float> logits(m.vocab_size), last(size_t{m.layers} * m.heads * 64);
    const SlotSignals signals{64, {}, {}, {}, 1, last};
    const SeqSlice slice{1, 60, length, table_, true, &signals, {}, mask};
    model_->Forward({std::span(tokens_).subspan(60, 1), {&slice, 1}}, logits);
    logits.insert(logits.end(), last.begin(), last.end());
    return logits;
  };
  const auto masked = decode(60, dead);
  const auto whole = decode(60, {});
  EXPECT_NE(masked, whole);
  for (size_t head = 0; head < size_t{m.layers} * m.heads; ++head) {
    EXPECT_EQ(masked[m.vocab_size + head * 64 + 5], 0);
    EXPECT_GT(whole[m.vocab_size + head * 64 + 5], 0);
  }

  // The last two live tokens fill the holes: the same set, in another order.
  const auto slot = [&](uint32_t i) { return table_[i / 4].value() * 4 + i % 4; };
  const RowMove moves[] = {{0, slot(59), slot(5)}, {0, slot(58), slot(11)}};
  model_->MoveRows(KvUnit::kSequence, moves);
  const auto moved = decode(58, {});
  for (uint32_t i = 0; i < m.vocab_size; ++i) EXPECT_NEAR(moved[i], masked[i], 1e-3) << i;
}

INSTANTIATE_TEST_SUITE_P(All, SignalGraph, testing::ValuesIn(kSets), kName);

}  // namespace
}  // namespace hidane::model
