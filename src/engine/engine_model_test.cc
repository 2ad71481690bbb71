#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "engine/engine.h"
#include "engine/engine_harness.h"
#include "engine/fakes.h"

/// The promise of Precision::kF32 on the real model: a request's tokens, and their
/// log-probabilities to the last bit, are the same whatever else the engine does.
namespace hidane::engine {
namespace {

const std::string kModel = HIDANE_SOURCE_DIR "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
struct Config {
  uint32_t chunk = 512, block_size = 16, kv_blocks = 256;
  bool prefix_cache = true;
};

class EngineModelTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef HIDANE_SANITIZED
    GTEST_SKIP() << "a minute of kernels in a release build; too long under a sanitizer";
#endif
    if (!std::filesystem::exists(kModel)) GTEST_SKIP() << "no model file: tools/fetch_model.sh";
  }

  void Start(const Config& config) {
    engine_.reset();
    registry_ = std::make_unique<obs::Registry>();
    auto model = model::Model::Load(kModel, {.precision = model::Precision::kF32,
                                             .block_size = config.block_size,
                                             .kv_blocks = config.kv_blocks,
                                             .step_tokens_max = config.chunk});
    ASSERT_TRUE(model) << model.error().what;
    name_ = (*model)->info().name;
    text_ = std::make_unique<FakeText>((*model)->info().vocab_size);
    engine_ = Engine::Create(std::move(*model), *text_,
                             {.max_num_batched_tokens = config.chunk,
                              .max_num_seqs = 16,
                              .prefix_cache = config.prefix_cache},
                             *registry_);
  }

  // Random tokens: next to no structure, so that the highest logits lie close together. Eight
  // share a long prefix, one is longer than a chunk of 64, half draw their tokens.
  std::vector<Request> Sixteen() const {
    Rng rng(1);
    const auto some = [&](size_t n) {
      std::vector<TokenId> tokens(n);
      for (TokenId& t : tokens) t = static_cast<TokenId>(rng.Below(text_->vocab_size()));
      return tokens;
    };
    const auto prefix = some(40);
    std::vector<Request> requests(16);
    for (size_t i = 0; i < 16; ++i) {
      Request& request = requests[i];
      if (i % 2 == 0) request.prompt = prefix;
      for (const TokenId t : some(i == 1 ? 90 : 1 + i)) request.prompt.push_back(t);
      request.max_tokens = 5;
      request.ignore_eos = true;
      request.logprobs = 1;
      request.sampling = {.temperature = i % 4 < 2 ? 0.0f : 1.0f, .seed = i, .has_seed = true};
    }
    return requests;
  }

  std::vector<Answer> Alone() {
    std::vector<Answer> answers;
    for (const Request& request : Sixteen()) {
      engine_->ResetPrefixCache();
      answers.push_back(RunAll(*engine_, {request}).at(0));
    }
    return answers;
  }

  static void ExpectEqual(const std::vector<Answer>& want, const std::vector<Answer>& got) {
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(want[i].tokens, got[i].tokens) << "request " << i;
      for (size_t t = 0; t < want[i].events.size() && t < got[i].events.size(); ++t) {
        EXPECT_EQ(want[i].events[t].top[0].logprob, got[i].events[t].top[0].logprob)
            << "request " << i << ", token " << t;
      }
    }
  }

  /// The first four under an eviction policy.
  std::vector<Request> Four(const char* policy) const {
    std::vector<Request> requests = Sixteen();
    requests.resize(4);
    for (size_t i = 0; i < requests.size(); ++i) {
      requests[i].max_tokens = 20;
      requests[i].kv_policy = KvPolicy{policy, 32, 1, i % 2 == 0 ? 40u : 0u};
    }
    return requests;
  }

  uint64_t Count(const char* metric) {
    return registry_->counter(metric, "", {{"model_name", name_}}).value();
  }

  std::string name_;
  std::unique_ptr<FakeText> text_;
  std::unique_ptr<obs::Registry> registry_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineModelTest, TheSameAloneInABatchChunkedColdWarmAndPreempted) {
  Start({.chunk = 2048});
  const auto alone = Alone();  // cold, too

  engine_->ResetPrefixCache();
  ExpectEqual(alone, RunAll(*engine_, Sixteen()));  // cold
  const uint64_t hits = Count("vllm:prefix_cache_hits_total");
  ExpectEqual(alone, RunAll(*engine_, Sixteen()));  // warm
  EXPECT_GT(Count("vllm:prefix_cache_hits_total"), hits + 8 * 32);

  Start({.chunk = 64});
  ExpectEqual(alone, RunAll(*engine_, Sixteen()));
  ExpectEqual(alone, RunAll(*engine_, Sixteen()));

  Start({.chunk = 64, .block_size = 1, .kv_blocks = 110, .prefix_cache = false});
  ExpectEqual(alone, RunAll(*engine_, Sixteen()));
  EXPECT_GT(Count("vllm:num_preemptions_total"), 0u);
}

// Every layer and head loses its own tokens, chosen by sums of attention that the kernels gave.
TEST_F(EngineModelTest, UnderAPolicyTheSameAloneInABatchChunkedColdWarmAndPreempted) {
  for (const char* policy : {"h2o", "r-kv"}) {
    Start({.chunk = 2048, .block_size = 4, .kv_blocks = 512, .prefix_cache = false});
    std::vector<Answer> alone;
    for (const Request& request : Four(policy)) {
      alone.push_back(RunAll(*engine_, {request}).at(0));
    }
    EXPECT_GE(Count("hidane_engine_kv_epochs_total"), 3u);

    Start({.chunk = 64, .block_size = 4, .kv_blocks = 512});
    ExpectEqual(alone, RunAll(*engine_, Four(policy)));  // cold
    ExpectEqual(alone, RunAll(*engine_, Four(policy)));  // warm
    EXPECT_GT(Count("vllm:prefix_cache_hits_total"), 0u);

    // An older sequence without a policy grows and pushes them out.
    std::vector<Request> crowd = Four(policy);
    crowd.insert(crowd.begin(), crowd[2]);
    crowd[0].kv_policy.reset();
    crowd[0].max_tokens = 60;
    Start({.chunk = 64, .block_size = 4, .kv_blocks = 44, .prefix_cache = false});
    auto answers = RunAll(*engine_, crowd);
    answers.erase(answers.begin());
    ExpectEqual(alone, answers);
    EXPECT_GT(Count("hidane_engine_kv_saved_total"), 0u);
  }
}

}  // namespace
}  // namespace hidane::engine
