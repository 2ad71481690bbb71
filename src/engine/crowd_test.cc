#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "engine/engine.h"
#include "engine/engine_harness.h"
#include "engine/fakes.h"
#include "model/tiny_model.h"

/// Everything at once: 200 requests that share a prefix, most of them under a policy, some for
/// several choices, in chunks and in memory that is too small for those that run.
namespace hidane::engine {
namespace {

constexpr uint32_t kVocab = 96, kShared = 96, kBlockSize = 8;

/// A quarter has no policy; of all, every ninth wants three choices.
std::vector<Request> TwoHundred() {
  const char* policies[] = {"streaming-llm", "h2o",     "scissorhands", "snapkv",
                            "tova",          "keydiff", "r-kv",         "random"};
  Rng rng(3);
  std::vector<TokenId> shared(kShared);
  for (TokenId& token : shared) token = static_cast<TokenId>(rng.Below(kVocab));
  std::vector<Request> requests(200);
  for (size_t i = 0; i < requests.size(); ++i) {
    Request& request = requests[i];
    request.prompt = shared;
    for (size_t n = 1 + rng.Below(30); n > 0; --n)
      request.prompt.push_back(static_cast<TokenId>(rng.Below(kVocab)));
    request.max_tokens = static_cast<uint32_t>(20 + rng.Below(30));
    request.ignore_eos = true;
    request.choices = i % 9 == 0 ? 3 : 1;
    request.sampling = {.temperature = i % 2 == 0 ? 1.0f : 0.0f, .seed = i, .has_seed = true};
    if (i % 4 != 0) request.kv_policy = KvPolicy{policies[i % 8], 40, 1, kShared};
  }
  return requests;
}

class Crowd : public testing::Test {
 protected:
  Crowd() : path_(testing::TempDir() + "crowd." + std::to_string(::getpid()) + ".gguf") {
    std::ofstream(path_, std::ios::binary) << model::TinyModel().Build();
  }
  ~Crowd() override {
    engine_.reset();
    std::filesystem::remove(path_);
  }

  std::vector<std::vector<Answer>> Run(const std::vector<Request>& requests, uint32_t kv_blocks,
                                       uint32_t chunk) {
    auto loaded = model::Model::Load(path_, {.precision = model::Precision::kF32,
                                             .block_size = kBlockSize,
                                             .kv_blocks = kv_blocks,
                                             .step_tokens_max = chunk});
    EXPECT_TRUE(loaded);
    engine_.reset();
    registry_ = std::make_unique<obs::Registry>();
    model_name_ = (*loaded)->info().name;
    engine_ = Engine::Create(std::move(*loaded), text_,
                             {.max_num_batched_tokens = chunk, .max_num_seqs = 64}, *registry_);
    auto answers = RunChoices(*engine_, requests);
    EXPECT_EQ(WaitUntilIdle(*engine_).kv_blocks_free, kv_blocks);
    return answers;
  }
  uint64_t Count(const char* name) {
    return registry_->counter(name, "", {{"model_name", model_name_}}).value();
  }

 private:
  std::string path_, model_name_;
  FakeText text_{kVocab};
  std::unique_ptr<obs::Registry> registry_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(Crowd, MemoryPressureChangesNoTokenAndNobodysHits) {
  const auto requests = TwoHundred();
  const auto roomy = Run(requests, 2000, 256);
  EXPECT_EQ(Count("vllm:num_preemptions_total"), 0u);

  const auto tight = Run(requests, 150, 64);
  EXPECT_GT(Count("vllm:num_preemptions_total"), 0u);
  EXPECT_GT(Count("hidane_engine_kv_saved_total"), 0u);
  EXPECT_GT(Count("hidane_engine_kv_blocks_freed_total"), 0u);
  ASSERT_EQ(tight.size(), requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    ASSERT_EQ(tight[i].size(), requests[i].choices);
    for (size_t c = 0; c < tight[i].size(); ++c) {
      EXPECT_EQ(tight[i][c].tokens, roomy[i][c].tokens) << "choice " << c << " of request " << i;
      EXPECT_EQ(tight[i][c].finish(), Finish::kLength);
    }
    // All but the first find the shared prefix, whatever others have evicted from it.
    if (i > 0 && !requests[i].kv_policy) {
      EXPECT_GE(tight[i][0].events[0].cached_tokens, kShared) << "request " << i;
    }
  }
}

}  // namespace
}  // namespace hidane::engine
