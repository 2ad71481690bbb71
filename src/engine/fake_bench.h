#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/fakes.h"

/// For tests of the whole engine, over a model whose every token depends on which tokens it has,
/// and in which order their slots lie.
namespace hidane::engine {

inline constexpr uint32_t kBenchVocab = 64;

struct BenchOptions {
  uint32_t chunk = 512, seqs = 64, kv_blocks = 1024, block_size = 4;
  bool prefix_cache = true;
  uint32_t hold = 0;  // the first step waits for so many requests
};

class FakeBench {
 public:
  explicit FakeBench(const BenchOptions& options)
      : text_(kBenchVocab),
        engine_(Engine::Create(
            std::make_unique<FakeModel>(FakeModelOptions{
                .vocab_size = kBenchVocab,
                .kv_blocks = options.kv_blocks,
                .block_size = options.block_size,
                .layers = 2,
                .kv_heads = 2,
                .heads = 4,
                .on_forward = [this, hold = options.hold](const auto&) { WaitFor(hold); }}),
            text_,
            {.max_num_batched_tokens = options.chunk,
             .max_num_seqs = options.seqs,
             .prefix_cache = options.prefix_cache},
            registry_)) {}
  Engine& operator*() { return *engine_; }
  Engine* operator->() { return engine_.get(); }
  uint64_t Count(const char* name) {
    return registry_.counter(name, "", {{"model_name", "fake"}}).value();
  }

 private:
  void WaitFor(uint32_t requests) {
    if (std::exchange(begun_, true)) return;
    while (engine_->stats().running + engine_->stats().waiting < requests)
      std::this_thread::yield();
  }

  bool begun_ = false;
  FakeText text_;
  obs::Registry registry_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace hidane::engine
