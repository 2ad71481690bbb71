#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "engine/kv_map.h"
#include "model/model.h"
#include "obs/metrics.h"
#include "text/text.h"
#include "vtoken/mode.h"

namespace hidane::engine {

struct SamplingParams {
  float temperature = 1.0f;  ///< >= 0; 0 = greedy: the highest logit, the lowest id on a tie
  float top_p = 1.0f;        ///< (0, 1]
  int32_t top_k = 0;         ///< >= 0; 0 = off
  uint64_t seed = 0;         ///< used when has_seed
  bool has_seed = false;
};

/// Which K/V a request may lose, and how much stays. The choice is a function of the request's
/// tokens alone; with "none" it loses nothing.
struct KvPolicy {
  std::string name = "none";  ///< one of vtoken::PolicyNames(), or "none"
  uint32_t budget = 0;        ///< tokens that stay at most; 0 = no limit
  double keep = 1;            ///< share of the stream that stays at most, (0, 1]
  /// Leading prompt tokens that other requests share. Policies that add up attention count from
  /// here, and the prefix cache serves this request no further.
  uint32_t shared_prompt = 0;
  /// When memory comes back: exact, at once, and what attention reads never depends on load; else
  /// when somebody lacks blocks, victims being masked until then, or (lazy) read.
  vtoken::Mode mode = vtoken::Mode::kExact;
  bool evicts() const { return name != "none"; }
};

/// A prompt to run. Tokens are already made: tokenizing is the I/O threads' work.
struct Request {
  std::vector<TokenId> prompt;  ///< >= 1 token
  uint32_t max_tokens = 16;     ///< >= 1
  SamplingParams sampling;
  std::vector<TokenId> stop_token_ids;  ///< beside the model's own end-of-generation tokens
  std::string cache_salt;               ///< part of the prefix cache's identity
  bool ignore_eos = false;              ///< the model's own end doesn't stop; stop_token_ids do
  std::optional<KvPolicy> kv_policy;    ///< absent: EngineOptions::kv_policy
  uint32_t logprobs = 0;                ///< top-n log-probabilities of each token; 0 = none
  /// Answers wanted, >= 1. The prompt is computed once, and they share its K/V. Each draws from its
  /// own seed, derived from the request's; the first from that itself.
  uint32_t choices = 1;
};

enum class Finish : uint8_t { kNone, kStop, kLength, kCancelled, kError };

struct TokenLogprob {
  TokenId id;
  float logprob;  ///< natural log, of the distribution before temperature, top-k and top-p
};

/// One generated token, or the end. Each event carries one token, never the answer so far.
struct Event {
  /// -1: none (an end without a token). With kStop it is the token that stopped: counted in
  /// completion_tokens, no part of the text.
  TokenId token = -1;
  std::vector<TokenLogprob> top;  ///< when asked for: the chosen token first, then the top n
  Finish finish = Finish::kNone;
  uint32_t choice = 0;  ///< which of the answers, 0 .. Request::choices - 1
  /// Running totals. Tokens of the prompt are the same for each choice, and counted once.
  uint32_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  std::string error;  ///< with kError
};

/// Gets a request's events, each choice's in order, on the engine thread. Must not block: it posts
/// to an I/O loop, typically. It may be called before Submit has returned, never for a choice whose
/// finish it has had. Destroyed on the engine thread.
using Sink = std::function<void(const Event&)>;

/// The CPU time of the calling thread.
const Clock& ThreadCpuClock();
/// The CPU time of the whole process: for models that compute on several threads. Counts what the
/// I/O threads use during a step too.
const Clock& ProcessCpuClock();

struct EngineOptions {
  /// Token budget of a step. REQUIRES: >= 1, <= the step_tokens_max that the model was loaded with.
  uint32_t max_num_batched_tokens = 512;
  /// >= 1; never more run than max_num_batched_tokens. Nor has a request more choices.
  uint32_t max_num_seqs = 64;
  uint32_t max_queue = 256;  ///< >= 1; waiting requests, more are refused
  bool prefix_cache = true;
  uint64_t seed = 0;        ///< of the requests that bring no seed, together with their id
  KvPolicy kv_policy = {};  ///< of the requests that name none. REQUIRES: CheckKvPolicy
  const Clock* clock = &SteadyClock();          ///< for latencies; thread-safe
  const Clock* busy_clock = &ThreadCpuClock();  ///< read by the engine thread around each step
};

/// A look at the engine, as of the end of its last step.
struct EngineStats {
  uint32_t running = 0, waiting = 0;
  uint32_t kv_blocks = 0, kv_blocks_free = 0, block_size = 0;
  double kv_usage = 0;  ///< 0..1, blocks held by running sequences
};

/// Sequences x sched x model x KV blocks -> tokens. One thread of its own computes; everything
/// else talks to it through Submit and Cancel. No socket. All calls are thread-safe and wait for
/// no step. Abstract so that the rooms above can be tested with a fake.
class Engine {
 public:
  /// Takes the model and starts the thread. Registers `vllm:*` and `hidane_engine_*` metrics with
  /// `registry`, which must outlive the engine, as must `text` and the clocks.
  static std::unique_ptr<Engine> Create(std::unique_ptr<model::Model> model,
                                        const text::TextModel& text, const EngineOptions& options,
                                        obs::Registry& registry);
  /// Stops the thread; live requests end with kCancelled before it returns.
  virtual ~Engine() = default;

  /// kInvalidArgument: a field is out of range, or prompt and max_tokens can't fit context or KV
  /// memory (`param` names the field). kResourceExhausted: the queue is full. On success `sink`
  /// gets events until each choice had one with a finish; on failure it is never called.
  virtual Result<SeqId> Submit(Request request, Sink sink) = 0;
  /// Ends a request within one step, waiting or running; its sink gets kCancelled for each choice
  /// that had not finished. Idempotent; an unknown id is ignored.
  virtual void Cancel(SeqId id) = 0;
  /// The same for one choice; the others go on. REQUIRES: it has had an event.
  virtual void CancelChoice(SeqId id, uint32_t choice) = 0;
  /// The most that Request::max_tokens may be for a prompt of so many tokens, by context and KV
  /// memory; 0: the prompt doesn't fit. `policy`: as Request::kv_policy.
  virtual uint32_t MaxTokens(uint64_t prompt_tokens,
                             const std::optional<KvPolicy>& policy) const = 0;
  /// Empties the prefix cache and the memory of what it once held, so that a measurement starts
  /// cold. Running requests keep their blocks. Holds for every request submitted later.
  virtual void ResetPrefixCache() = 0;
  /// Calls `done` on the engine thread, between two steps, with where every token is. It must not
  /// block. Costs O(live tokens * units).
  virtual void ReadKv(std::function<void(KvMap)> done) = 0;
  virtual EngineStats stats() const = 0;
  virtual const model::ModelInfo& model_info() const = 0;
};

}  // namespace hidane::engine
