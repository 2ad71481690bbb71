#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/rng.h"
#include "engine/evictor.h"
#include "engine/policy_params.h"
#include "model/tiny_model.h"

/// What a model computes after evictions, against two references that know no evictions:
///   A  the live tokens copied densely into other blocks, in the same order of slots, same kernels:
///      the same bits;
///   B  every token kept, and those evicted hidden from attention by a mask: equal up to the order
///      of sums.
/// Along the way no live token's K/V changes a byte, and every free slot holds NaN.
namespace hidane::engine {
namespace {

constexpr uint32_t kBlocks = 80, kPrompt = 90, kAnswer = 70;

/// One sequence under a policy: scheduler, evictor and model, turned by hand.
class ByHand {
 public:
  /// `reclaim`: steps between two shortages of blocks; 0: there is none.
  ByHand(const std::string& policy, uint32_t block_size, uint32_t chunk, bool scalar,
         vtoken::Mode mode = vtoken::Mode::kExact, uint32_t reclaim = 0)
      : reclaim_(reclaim),
        path_(testing::TempDir() + "eviction_reference." + std::to_string(::getpid()) + ".gguf") {
    model::TinyModel tiny;
    tiny.heads = 4;
    std::ofstream(path_, std::ios::binary) << tiny.Build();
    options_ = {.precision = model::Precision::kF32,
                .block_size = block_size,
                .kv_blocks = kBlocks,
                .step_tokens_max = 128,
                .reference_kernels = scalar};
    model_ = Load();
    twin_ = Load();
    masked_ = Load();
    scheduler_ = std::make_unique<sched::Scheduler>(sched::SchedulerOptions{
        .kv_blocks = kBlocks, .block_size = block_size, .tokens_max = chunk});
    evictor_ = std::make_unique<Evictor>(*model_, *scheduler_, SteadyClock());
    for (uint32_t i = 0; i < kPrompt; ++i) tokens_.push_back(static_cast<TokenId>(i * 37 % 96));
    const auto evictable = evictor_->Add(kId, {policy, 40, 1, 0, mode}, kPrompt, 7);
    scheduler_->Add(kId, kPrompt, {}, evictable);
    for (uint32_t i = 0; i < kBlocks; ++i) dense_.push_back(BlockId(i));
    rng_ = Rng(block_size);
  }
  ~ByHand() { std::filesystem::remove(path_); }

  void Run() {
    while (tokens_.size() < kPrompt + kAnswer && !testing::Test::HasFatalFailure()) Step();
  }
  const EvictionStats& stats() const { return evictor_->stats(); }
  float worst_masked() const { return worst_masked_; }
  float worst_permuted() const { return worst_permuted_; }

 private:
  static constexpr SeqId kId{1};
  using Rows = std::map<std::pair<uint32_t, uint32_t>, std::vector<std::byte>>;

  std::unique_ptr<model::Model> Load() {
    auto loaded = model::Model::Load(path_, options_);
    EXPECT_TRUE(loaded) << loaded.error().what;
    return std::move(*loaded);
  }
  const sched::SeqState& state() const { return scheduler_->state(kId); }
  const PolicySequence& seq() const { return *evictor_->Find(kId); }
  uint32_t vocab() const { return model_->info().vocab_size; }

  void Step() {
    evictor_->Join();
    ExpectSameRows(before_, LiveRows());
    PoisonFreeBlocks();
    if (reclaim_ > 0 && ++steps_ % reclaim_ == 0) Reclaim();
    const sched::StepPlan plan = scheduler_->Plan();
    scheduler_->Commit(plan);
    ASSERT_EQ(plan.run.size(), 1u);
    const uint32_t n = plan.run[0].n_tokens, first = state().computed;
    const auto tokens = std::span(tokens_).subspan(first, n);
    model::SeqSlice slice{n, first, state().active(), state().table, true};
    evictor_->Ask(kId, slice);

    const std::vector<float> copied = OnTwin(slice, tokens, Identity(seq().slots()));
    const std::vector<float> permuted = OnTwin(slice, tokens, RandomOrder(slice));
    const std::vector<float> masked = OnMasked(slice, tokens);
    const std::vector<float> logits = Forward(*model_, slice, tokens);
    ASSERT_EQ(logits, copied);
    worst_permuted_ = std::max(worst_permuted_, Distance(logits, permuted));
    worst_masked_ = std::max(worst_masked_, Distance(logits, masked));

    scheduler_->Complete(plan);
    before_ = LiveRows();  // but for this step's
    evictor_->Run(plan);
    if (state().computed < state().tokens) return;
    tokens_.push_back(
        static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    scheduler_->Append(kId);
  }

  void Reclaim() {
    before_ = LiveRows();
    const bool wasteful = seq().kv().reclaimable_blocks() > 0;
    EXPECT_EQ(evictor_->Reclaim(), wasteful);
    EXPECT_EQ(seq().kv().reclaimable_blocks(), 0u);
    ExpectSameRows(before_, LiveRows());
    PoisonFreeBlocks();
  }

  std::vector<float> Forward(model::Model& model, const model::SeqSlice& slice,
                             std::span<const TokenId> tokens) const {
    std::vector<float> logits(vocab());
    model.Forward({tokens, {&slice, 1}}, logits);
    return logits;
  }
  static float Distance(std::span<const float> a, std::span<const float> b) {
    float worst = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      worst = std::max(worst, std::isfinite(b[i]) ? std::abs(a[i] - b[i]) : 1e9f);
    }
    return worst;
  }

  static std::vector<uint32_t> Identity(uint32_t n) {
    std::vector<uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    return order;
  }
  // Of the slots that are read and not written in this step.
  std::vector<uint32_t> RandomOrder(const model::SeqSlice& slice) {
    std::vector<uint32_t> order = Identity(seq().slots());
    // Each unit writes, or hides, another.
    if (!slice.write_slots.empty() || !slice.dead.empty()) return order;
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng_.Below(i)]);
    return order;
  }

  /// Reference A: slot i of the copy is slot order[i] of the sequence.
  std::vector<float> OnTwin(model::SeqSlice slice, std::span<const TokenId> tokens,
                            const std::vector<uint32_t>& order) {
    const auto slots = static_cast<uint32_t>(order.size());
    const size_t token = model_->kv_layout().token_bytes();
    const size_t row = model_->kv_layout().row_bytes();
    std::vector<std::byte> bytes(slots * token), copy(bytes.size());
    model_->SaveSlots(state().table, slots, bytes);
    for (size_t array = 0; array < token / row; ++array) {
      for (uint32_t i = 0; i < slots; ++i) {
        const auto from = bytes.begin() + static_cast<ptrdiff_t>((array * slots + order[i]) * row);
        std::copy_n(from, row, copy.begin() + static_cast<ptrdiff_t>((array * slots + i) * row));
      }
    }
    twin_->LoadSlots(dense_, slots, copy);
    slice.block_table = dense_;
    slice.signals = nullptr;
    return Forward(*twin_, slice, tokens);
  }

  /// Reference B: token = slot, the evicted ones are masked.
  std::vector<float> OnMasked(model::SeqSlice slice, std::span<const TokenId> tokens) {
    const model::ModelInfo& m = model_->info();
    const size_t words = (kPrompt + kAnswer) / 64 + 1;
    std::vector<uint64_t> dead(m.layers * m.kv_heads * words, 0);
    const vtoken::SequenceKv& kv = seq().kv();
    for (uint32_t head = 0; head < m.layers * m.kv_heads; ++head) {
      const auto bits = std::span(dead).subspan(head * words, words);
      for (uint32_t token = 0; token < slice.first_position; ++token) {
        bits[token / 64] |= uint64_t{1} << token % 64;
      }
      for (uint32_t slot = 0; slot < seq().slots(); ++slot) {
        if (!kv.live(UnitOf(head), slot)) continue;
        const uint32_t token = kv.token(UnitOf(head), slot);
        bits[token / 64] &= ~(uint64_t{1} << token % 64);
      }
    }
    slice.active_length = slice.first_position;
    slice.block_table = dense_;
    slice.write_slots = {};
    slice.dead = {};
    slice.signals = nullptr;
    if (kv.evicted()) slice.dead = dead;
    return Forward(*masked_, slice, tokens);
  }

  uint32_t UnitOf(uint32_t head) const {
    const vtoken::Scope scope = seq().kv().shape().scope;
    if (scope == vtoken::Scope::kSequence) return 0;
    return scope == vtoken::Scope::kLayer ? head / model_->info().kv_heads : head;
  }

  /// K and V of each live token, by (layer and kv head, token).
  Rows LiveRows() const {
    const model::KvLayout& layout = model_->kv_layout();
    const vtoken::SequenceKv& kv = seq().kv();
    const uint32_t slots = seq().slots();
    std::vector<std::byte> bytes(slots * layout.token_bytes());
    model_->SaveSlots(kv.table(), slots, bytes);
    Rows rows;
    for (uint32_t head = 0; head < layout.layers * layout.kv_heads; ++head) {
      for (uint32_t slot = 0; slot < slots; ++slot) {
        if (!kv.live(UnitOf(head), slot)) continue;
        auto& both = rows[{head, kv.token(UnitOf(head), slot)}];
        for (const uint32_t array : {0u, 1u}) {
          const size_t run =
              (head / layout.kv_heads * 2 + array) * layout.kv_heads + head % layout.kv_heads;
          const auto from =
              bytes.begin() + static_cast<ptrdiff_t>((run * slots + slot) * layout.row_bytes());
          both.insert(both.end(), from, from + static_cast<ptrdiff_t>(layout.row_bytes()));
        }
      }
    }
    return rows;
  }
  static void ExpectSameRows(const Rows& before, const Rows& after) {
    for (const auto& [name, bytes] : after) {
      const auto at = before.find(name);
      if (at == before.end()) continue;
      ASSERT_EQ(at->second, bytes) << "unit " << name.first << " token " << name.second;
    }
  }

  void PoisonFreeBlocks() {
    const uint32_t slots = options_.block_size;
    const std::vector<std::byte> nan(slots * model_->kv_layout().token_bytes(), std::byte{0xFF});
    for (uint32_t i = 0; i < kBlocks; ++i) {
      const BlockId block(i);
      if (*scheduler_->cache().RefCount(block) == 0) model_->LoadSlots({&block, 1}, slots, nan);
    }
  }

  const uint32_t reclaim_;
  uint32_t steps_ = 0;
  std::string path_;
  model::ModelOptions options_;
  std::unique_ptr<model::Model> model_, twin_, masked_;
  std::unique_ptr<sched::Scheduler> scheduler_;
  std::unique_ptr<Evictor> evictor_;
  std::vector<TokenId> tokens_;
  std::vector<BlockId> dense_;
  Rng rng_{0};
  Rows before_;
  float worst_masked_ = 0, worst_permuted_ = 0;
};

class EvictionReference : public testing::TestWithParam<std::string> {};

TEST_P(EvictionReference, AttentionReadsTheLiveTokensBitForBit) {
  for (const uint32_t block_size : {4u, 16u}) {
    ByHand hand(GetParam(), block_size, 32, /*scalar=*/false);
    hand.Run();
    EXPECT_GT(hand.stats().epochs, 0u);
    EXPECT_LT(hand.worst_permuted(), 1e-3f);
  }
}

TEST_P(EvictionReference, MaskedAttentionOverAllTokensSaysTheSame) {
  ByHand hand(GetParam(), 4, 32, /*scalar=*/true);
  hand.Run();
  EXPECT_GT(hand.stats().epochs, 0u);
  RecordProperty("worst_masked", std::to_string(hand.worst_masked()));
  RecordProperty("worst_permuted", std::to_string(hand.worst_permuted()));
  EXPECT_LT(hand.worst_masked(), 1e-4f);
}

TEST_P(EvictionReference, MaskedModeIsTheMaskUntilSomebodyLacksBlocks) {
  for (const bool scalar : {true, false}) {
    ByHand hand(GetParam(), 4, 32, scalar, vtoken::Mode::kMasked);
    hand.Run();
    EXPECT_GT(hand.stats().epochs, 0u);
    EXPECT_EQ(hand.stats().moves + hand.stats().blocks_freed, 0u);
    EXPECT_EQ(hand.worst_masked(), 0.0f);
  }
}

TEST_P(EvictionReference, AShortageWinsMaskedBlocksBack) {
  for (const uint32_t reclaim : {1u, 7u}) {
    ByHand hand(GetParam(), 4, 32, /*scalar=*/false, vtoken::Mode::kMasked, reclaim);
    hand.Run();
    EXPECT_GT(hand.stats().blocks_freed, 0u);
    EXPECT_LT(hand.worst_masked(), 1e-4f);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EvictionReference, testing::ValuesIn(EveryPolicy()), PolicyTestName);

}  // namespace
}  // namespace hidane::engine
