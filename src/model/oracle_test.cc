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
  std::unique_ptr<Model> Load(Precision precision, bool reference) {
    if (!std::filesystem::exists(kModel)) return nullptr;
    auto model = Model::Load(
        kModel,
        {.precision = precision, .kv_blocks = 32, .threads = 2, .reference_kernels = reference});
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

}  // namespace
}  // namespace hidane::model
