#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "model/model.h"
#include "obs/metrics.h"
#include "text/text.h"

namespace hidane::engine {

struct SamplingParams {
  float temperature = 1.0f;  ///< 0 = greedy
  float top_p = 1.0f;
  int32_t top_k = 0;         ///< 0 = off
  uint64_t seed = 0;         ///< used when has_seed
  bool has_seed = false;
};

/// A prompt to run. Tokens are already made: tokenizing is the I/O threads' work.
struct Request {
  std::vector<TokenId> prompt;           ///< >= 1 token
  uint32_t max_tokens = 16;              ///< >= 1
  SamplingParams sampling;
  std::vector<TokenId> stop_token_ids;   ///< beside the model's own end-of-generation tokens
  std::string cache_salt;                ///< part of the prefix cache's identity
  bool ignore_eos = false;
  uint32_t logprobs = 0;                 ///< top-n log-probabilities of each token; 0 = none
};

enum class Finish : uint8_t { kNone, kStop, kLength, kCancelled, kError };

struct TokenLogprob {
  TokenId id;
  float logprob;
};

/// One generated token, or the end. Events of a request come in order from the engine thread.
struct Event {
  TokenId token = -1;              ///< -1: none (an end without a token)
  std::vector<TokenLogprob> top;   ///< when asked for: the chosen token first, then the top n
  Finish finish = Finish::kNone;
  uint32_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;  ///< running totals
  std::string error;               ///< with kError
};
/// Must not block: it runs on the engine thread. Posts to an I/O loop, typically.
using Sink = std::function<void(const Event&)>;

struct EngineOptions {
  uint32_t max_num_batched_tokens = 512;  ///< token budget of a step; >= 1
  uint32_t max_num_seqs = 64;
  uint32_t max_queue = 256;               ///< waiting requests; more are refused
  bool prefix_cache = true;
};

/// A consistent look at the engine, cheap, from any thread.
struct EngineStats {
  uint32_t running, waiting;
  uint32_t kv_blocks, kv_blocks_free, block_size;
  double kv_usage;  ///< 0..1, blocks held by running sequences
};

/// Sequences x sched x model x KV blocks -> tokens. One thread of its own computes; everything
/// else talks to it through Submit and Cancel. No socket.
class Engine {
 public:
  /// Takes the model. Registers `vllm:*` and `hidane_engine_*` metrics with `registry`, which must
  /// outlive the engine, as must `text`.
  Engine(std::unique_ptr<model::Model> model, const text::TextModel& text, EngineOptions options,
         obs::Registry& registry);
  ~Engine();  ///< stops the thread; live requests end with kCancelled

  /// kInvalidArgument: the prompt and max_tokens can't fit context or KV memory (names both).
  /// kResourceExhausted: the queue is full. On success `sink` gets events until one with a finish.
  Result<SeqId> Submit(Request request, Sink sink);
  /// Ends a request within one step; its sink gets kCancelled unless it had finished. Idempotent.
  void Cancel(SeqId id);
  /// Empties the prefix cache of unreferenced blocks (for measurements).
  void ResetPrefixCache();
  EngineStats stats() const;
  const model::ModelInfo& model_info() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hidane::engine
