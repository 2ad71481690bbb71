#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "model/kernels.h"
#include "model/model.h"
#include "model/model_run.h"

/// The real model against the numpy oracle's record (tests/oracle/expected.json).
namespace hidane::model {
namespace {

const std::string kModel = HIDANE_SOURCE_DIR "/models/SmolLM2-135M-Instruct.Q4_1.gguf";

// The stated bounds of bf16 against f32: see the room's README for what was measured.
constexpr double kBf16LogProbMax = 0.25;  ///< of the 20 most probable first tokens
constexpr double kBf16KlMax = 0.002;      ///< nats

struct Expected {
  std::string name;
  std::vector<TokenId> tokens, greedy;
  std::vector<std::pair<TokenId, double>> top;  ///< id and log-probability, most probable first
};

std::vector<Expected> ReadExpected() {
  simdjson::dom::parser parser;
  std::vector<Expected> all;
  for (auto row : parser.load(HIDANE_SOURCE_DIR "/tests/oracle/expected.json").get_array()) {
    Expected e;
    e.name = std::string(std::string_view(row["name"]));
    for (auto id : row["tokens"]) e.tokens.push_back(static_cast<TokenId>(int64_t(id)));
    for (auto id : row["greedy"]) e.greedy.push_back(static_cast<TokenId>(int64_t(id)));
    for (auto pair : row["top"]) {
      e.top.emplace_back(static_cast<TokenId>(int64_t(pair.at(0))), double(pair.at(1)));
    }
    all.push_back(std::move(e));
  }
  return all;
}

std::vector<double> LogProbs(std::span<const float> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - top);
  std::vector<double> log_probs(logits.begin(), logits.end());
  for (double& x : log_probs) x -= top + std::log(sum);
  return log_probs;
}

/// How far ours is from the oracle's first-token distribution.
struct Distance {
  double worst;  ///< largest difference in log-probability among the oracle's first `n`
  double kl;     ///< of the recorded ids and the rest as one, in nats
};

Distance Compare(const Expected& expected, std::span<const float> logits, size_t n) {
  const auto ours = LogProbs(logits);
  Distance d{0, 0};
  double rest = 1, our_rest = 1;
  for (size_t i = 0; i < expected.top.size(); ++i) {
    const auto [id, log_p] = expected.top[i];
    const double log_q = ours[static_cast<size_t>(id)], p = std::exp(log_p);
    if (i < n) d.worst = std::max(d.worst, std::abs(log_p - log_q));
    d.kl += p * (log_p - log_q);
    rest -= p;
    our_rest -= std::exp(log_q);
  }
  if (rest > 0 && our_rest > 0) d.kl += rest * std::log(rest / our_rest);
  return d;
}

class Oracle : public testing::Test {
 protected:
  void SetUp() override {
#ifdef HIDANE_SANITIZED
    GTEST_SKIP() << "seconds of kernels in a release build; ten minutes under a sanitizer";
#endif
  }

  std::unique_ptr<Model> Load(Precision precision, bool reference) {
    if (!std::filesystem::exists(kModel)) return nullptr;
    auto model = Model::Load(
        kModel,
        {.precision = precision, .kv_blocks = 128, .threads = 2, .reference_kernels = reference});
    EXPECT_TRUE(model) << model.error().what;
    return model ? std::move(*model) : nullptr;
  }

  /// Continues `e` greedily for `n` tokens; `first` receives the first token's logits.
  static std::vector<TokenId> Greedy(Model& model, const Expected& e, size_t n,
                                     std::vector<float>& first) {
    Sequence sequence(model);
    first = sequence.Feed(e.tokens);
    std::vector<TokenId> out = {Argmax(first)};
    while (out.size() < n) out.push_back(Argmax(sequence.Feed({&out.back(), 1})));
    return out;
  }
};

TEST_F(Oracle, ScalarSetAgrees) {
  const auto model = Load(Precision::kF32, /*reference=*/true);
  if (model == nullptr) GTEST_SKIP() << "no model file; run tools/fetch_model.sh";
  for (const Expected& e : ReadExpected()) {
    if (e.tokens.size() > 13) continue;  // the scalar set is slow
    std::vector<float> first;
    const auto greedy = Greedy(*model, e, 3, first);
    EXPECT_TRUE(std::equal(greedy.begin(), greedy.end(), e.greedy.begin())) << e.name;
    EXPECT_LT(Compare(e, first, e.top.size()).worst, 1e-3) << e.name;
  }
}

/// All prompts continued greedily side by side, one token each a step; `first` receives the logits
/// of each prompt's first token.
std::vector<std::vector<TokenId>> GreedyBatch(Model& model, std::span<const Expected> all, size_t n,
                                              std::vector<std::vector<float>>& first) {
  const uint32_t vocab = model.info().vocab_size, block_size = model.kv_layout().block_size;
  std::vector<std::vector<TokenId>> out(all.size());
  std::vector<std::vector<BlockId>> tables(all.size());
  std::vector<TokenId> tokens;
  std::vector<SeqSlice> slices;
  uint32_t block = 0;
  for (size_t s = 0; s < all.size(); ++s) {
    const auto length = static_cast<uint32_t>(all[s].tokens.size());
    while (tables[s].size() * block_size < length + n) tables[s].push_back(BlockId(block++));
    tokens.insert(tokens.end(), all[s].tokens.begin(), all[s].tokens.end());
    slices.push_back({length, 0, 0, tables[s], true});
  }
  std::vector<float> logits(all.size() * vocab);
  for (size_t step = 0; step < n; ++step) {
    model.Forward({tokens, slices}, logits);
    tokens.clear();
    for (size_t s = 0; s < all.size(); ++s) {
      const auto row = std::span(logits).subspan(s * vocab, vocab);
      if (step == 0) first.emplace_back(row.begin(), row.end());
      out[s].push_back(Argmax(row));
      tokens.push_back(out[s].back());
      const uint32_t length = slices[s].active_length + slices[s].n_tokens;
      slices[s] = {1, length, length, tables[s], true};
    }
  }
  return out;
}

TEST_F(Oracle, F32GivesTheSameTokensAndLogProbabilities) {
  const auto model = Load(Precision::kF32, /*reference=*/false);
  if (model == nullptr) GTEST_SKIP() << "no model file; run tools/fetch_model.sh";
  constexpr size_t kTokens = 64;
  const auto all = ReadExpected();
  ASSERT_GE(all.size(), 8u);
  std::vector<std::vector<float>> first;
  const auto greedy = GreedyBatch(*model, all, kTokens, first);
  double worst = 0;
  for (size_t s = 0; s < all.size(); ++s) {
    ASSERT_EQ(all[s].greedy.size(), kTokens);
    EXPECT_EQ(greedy[s], all[s].greedy) << all[s].name;
    worst = std::max(worst, Compare(all[s], first[s], all[s].top.size()).worst);
  }
  std::cout << all.size() << " prompts x " << kTokens << " tokens; worst first-token difference "
            << worst << "\n";
  EXPECT_LT(worst, 1e-3);
}

TEST_F(Oracle, Bf16StaysWithinItsBoundOnTheFirstToken) {
  if (!CpuMultipliesBf16()) GTEST_SKIP() << "this CPU has no bf16 dot products";
  const auto model = Load(Precision::kBf16, /*reference=*/false);
  if (model == nullptr) GTEST_SKIP() << "no model file; run tools/fetch_model.sh";
  for (const Expected& e : ReadExpected()) {
    std::vector<float> first;
    const auto greedy = Greedy(*model, e, 1, first);
    const Distance d = Compare(e, first, 20);
    std::cout << e.name << ": worst of top 20 " << d.worst << ", KL " << d.kl << "\n";
    EXPECT_LT(d.worst, kBf16LogProbMax) << e.name;
    EXPECT_LT(d.kl, kBf16KlMax) << e.name;
    EXPECT_EQ(greedy[0], e.greedy[0]) << e.name;
  }
}

}  // namespace
}  // namespace hidane::model
