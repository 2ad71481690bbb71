#include "model/model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "model/kernels.h"
#include "model/model_run.h"
#include "model/tiny_model.h"

namespace hidane::model {
namespace {

/// A tiny model on disk for the life of a test.
class TinyFile {
 public:
  explicit TinyFile(const TinyModel& tiny = {})
      : path_(testing::TempDir() + "model_test." + std::to_string(::getpid()) + ".gguf") {
    std::ofstream(path_, std::ios::binary) << tiny.Build();
  }
  ~TinyFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Variant {
  const char* name;
  Precision precision;
  bool reference;
  uint32_t threads;
};
void PrintTo(const Variant& variant, std::ostream* out) {
  *out << variant.name;
}

ModelOptions Options(const Variant& variant) {
  return {.precision = variant.precision,
          .block_size = 4,
          .kv_blocks = 256,
          .threads = variant.threads,
          .step_tokens_max = 128,
          .reference_kernels = variant.reference};
}

std::vector<TokenId> SomeTokens(size_t n, uint32_t salt = 0) {
  std::vector<TokenId> tokens(n);
  for (size_t i = 0; i < n; ++i) tokens[i] = static_cast<TokenId>((i * 37 + salt * 11 + 5) % 96);
  return tokens;
}

class Graph : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    const Variant& variant = GetParam();
    if (variant.precision == Precision::kBf16 && !variant.reference && !CpuMultipliesBf16()) {
      GTEST_SKIP() << "this CPU has no bf16 dot products";
    }
    auto loaded = Model::Load(file_.path(), Options(GetParam()));
    ASSERT_TRUE(loaded) << loaded.error().what;
    model_ = std::move(*loaded);
  }

  /// Logits after `tokens`, fed in chunks of `chunk` to a fresh sequence.
  std::vector<float> Chunked(std::span<const TokenId> tokens, size_t chunk, uint32_t first_block) {
    Sequence sequence(*model_, first_block);
    std::vector<float> logits;
    for (size_t at = 0; at < tokens.size(); at += chunk) {
      logits = sequence.Feed(tokens.subspan(at, std::min(chunk, tokens.size() - at)));
    }
    return logits;
  }

  void ExpectSame(std::span<const float> a, std::span<const float> b) {
    ASSERT_EQ(a.size(), b.size());
    // bf16 sums may be split differently; f32 is promised bit for bit.
    const float tolerance = GetParam().precision == Precision::kBf16 ? 0.15f : 0.0f;
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << i;
  }

  TinyFile file_;
  std::unique_ptr<Model> model_;
};

TEST_P(Graph, ChunksOfAnySizeGiveTheSameLogits) {
  const auto tokens = SomeTokens(61);
  const auto whole = Chunked(tokens, tokens.size(), 0);
  for (const size_t chunk : {1, 3, 7, 32}) ExpectSame(Chunked(tokens, chunk, 40), whole);
}

TEST_P(Graph, SequencesInABatchDoNotSeeEachOther) {
  constexpr size_t kSeqs = 16;
  std::vector<TokenId> tokens;
  std::vector<std::vector<BlockId>> tables(kSeqs);
  std::vector<SeqSlice> slices;
  for (uint32_t s = 0; s < kSeqs; ++s) {
    const auto own = SomeTokens(1 + s % 8, s);
    tokens.insert(tokens.end(), own.begin(), own.end());
    tables[s] = {BlockId(200 - 2 * s), BlockId(201 - 2 * s)};
    slices.push_back({static_cast<uint32_t>(own.size()), 0, 0, tables[s], s % 3 != 1});
  }
  const size_t wanted = static_cast<size_t>(
      std::count_if(slices.begin(), slices.end(), [](const auto& s) { return s.want_logits; }));
  std::vector<float> logits(wanted * model_->info().vocab_size);
  model_->Forward({tokens, slices}, logits);

  std::span<const float> rest = logits;
  for (uint32_t s = 0; s < kSeqs; ++s) {
    if (!slices[s].want_logits) continue;
    ExpectSame(rest.first(model_->info().vocab_size), Chunked(SomeTokens(1 + s % 8, s), 64, 0));
    rest = rest.subspan(model_->info().vocab_size);
  }
}

TEST_P(Graph, OnlyDistancesBetweenPositionsMatter) {
  const auto tokens = SomeTokens(20);
  const auto from_zero = Chunked(tokens, tokens.size(), 0);
  Sequence later(*model_, 100, /*first_position=*/200);
  const auto shifted = later.Feed(tokens);
  for (size_t i = 0; i < shifted.size(); ++i) EXPECT_NEAR(shifted[i], from_zero[i], 0.2) << i;
}

TEST_P(Graph, AStepWithoutWantedLogitsOnlyFillsTheCache) {
  const auto tokens = SomeTokens(24);
  Sequence quiet(*model_, 0);
  quiet.Feed(std::span(tokens).first(23), /*want_logits=*/false);
  ExpectSame(quiet.Feed(std::span(tokens).last(1)), Chunked(tokens, 24, 50));
}

TEST_P(Graph, LogitsAreTheScalarSetsWithinTheErrorOfThePrecision) {
  const Variant scalar{"", Precision::kF32, true, 1};
  auto reference = Model::Load(file_.path(), Options(scalar));
  ASSERT_TRUE(reference);
  const auto tokens = SomeTokens(100);
  const auto expected = Sequence(**reference).Feed(tokens);
  const auto logits = Chunked(tokens, 37, 0);
  // Logits of this model spread over about 10; the deviation of bf16 is that of its 8 bits.
  const float tolerance = GetParam().precision == Precision::kBf16 ? 0.3f : 1e-4f;
  for (size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(logits[i], expected[i], tolerance) << i;
}

TEST_P(Graph, AnEmptyStepIsNothing) {
  model_->Forward({{}, {}}, {});
}

INSTANTIATE_TEST_SUITE_P(All, Graph,
                         testing::Values(Variant{"ref_f32", Precision::kF32, true, 1},
                                         Variant{"ref_bf16", Precision::kBf16, true, 1},
                                         Variant{"fast_f32", Precision::kF32, false, 1},
                                         Variant{"fast_f32_threads", Precision::kF32, false, 3},
                                         Variant{"fast_bf16", Precision::kBf16, false, 1},
                                         Variant{"fast_bf16_threads", Precision::kBf16, false, 3}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(ModelLoad, BadOptionsAndFilesAreRefused) {
  const TinyFile file;
  const ModelOptions good{.kv_blocks = 8, .reference_kernels = true};
  EXPECT_TRUE(Model::Load(file.path(), good));
  EXPECT_EQ(Model::Load(file.path() + ".absent", good).error().code, Code::kNotFound);
  for (auto spoil :
       {+[](ModelOptions& o) { o.kv_blocks = 0; }, +[](ModelOptions& o) { o.block_size = 0; },
        +[](ModelOptions& o) { o.block_size = 257; }, +[](ModelOptions& o) { o.threads = 0; },
        +[](ModelOptions& o) { o.step_tokens_max = 0; }}) {
    ModelOptions bad = good;
    spoil(bad);
    EXPECT_EQ(Model::Load(file.path(), bad).error().code, Code::kInvalidArgument);
  }
  ModelOptions huge = good;
  huge.kv_blocks = ~0u;
  huge.block_size = 256;
  EXPECT_EQ(Model::Load(file.path(), huge).error().code, Code::kResourceExhausted);
}

}  // namespace
}  // namespace hidane::model
