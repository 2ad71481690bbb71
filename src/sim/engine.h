#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "sched/scheduler.h"
#include "sim/gpu.h"
#include "sim/request.h"

namespace hidane::sim {

struct EngineOptions {
  GpuSetup gpu;
  uint32_t block_size = 64;  ///< tokens of a KV block
  uint32_t max_num_batched_tokens = 8'192;
  uint32_t max_num_seqs = 256;
  /// False: only static prefixes stay cached. Engines keep whatever they computed, in LRU order;
  /// this is what one gains that lets prompts' ends, which come once, go first.
  bool cache_tails = true;
  sched::Eviction eviction = sched::Eviction::kLru;  ///< vLLM's order
};

/// What happened to one request in a step.
struct StepEvent {
  enum class Kind : uint8_t { kFirstToken, kFinished };
  Kind kind;
  uint64_t id;
  uint32_t cached_tokens;  ///< of its prompt, found at its first admission
};

/// Where an engine's time went, in seconds. A step's prefill time is split over its tokens as the
/// step model weighs them.
struct EngineTime {
  double busy = 0;
  double prefill = 0;           ///< of it
  double static_prefill = 0;    ///< of that: static tokens (before k1_end), first sight included
  double static_recompute = 0;  ///< of that: tokens that this engine once held
  double recompute = 0;         ///< of prefill: any tokens that this engine once held

  EngineTime& operator+=(const EngineTime& other);
};

/// What a request would meet at an engine, by the engine's true state, in seconds.
struct Forecast {
  uint32_t cached_tokens = 0;  ///< of its prompt, those that others are to compute included
  double wait = 0;             ///< prefill of those before it
  double prefill = 0;          ///< its own
  double decode = 0;           ///< steps of those that decode, between the chunks
  double kv_wait = 0;          ///< until running requests have left room
};

/// One serving engine in virtual time: the real scheduler, prefix cache and block pool, with the
/// step model in place of the GPU. The owner turns the crank:
///
///   Submit ... -> BeginStep() = how long -> (that much later) EndStep() -> BeginStep() ...
///
/// Requests that arrive during a step are seen by the next one. A KV block is named by the chain
/// value of the prompt's block that holds its last token, so chains of any granularity will do.
/// A step costs O(running), a request O(blocks). Not thread-safe.
class Engine {
 public:
  /// REQUIRES: the KV memory holds a block; max_num_batched_tokens and max_num_seqs >= 1.
  explicit Engine(const EngineOptions& options);

  /// False: it could never fit the KV memory; nothing is kept.
  /// REQUIRES: `request.id` isn't in the engine; its prompt has tokens.
  bool Submit(const Request& request);
  /// The client left. No-op for an unknown id. During a step it takes effect at its end, and the
  /// request is in no event.
  void Cancel(uint64_t id);
  /// REQUIRES: no step under way. nullopt: nothing to do.
  std::optional<Duration> BeginStep();
  /// In the order of computation. REQUIRES: a step under way. Valid until the next call.
  std::span<const StepEvent> EndStep();
  bool stepping() const { return !plan_.run.empty(); }
  /// The process dies and starts anew, empty; a step under way never was. Returns the ids that
  /// were lost, in order of arrival.
  std::vector<uint64_t> Restart();

  /// What no gateway knows. O(requests here + blocks of the prompt).
  Forecast Predict(const prompt::Identity& prompt, uint32_t output_tokens) const;

  /// Seconds to compute these tokens of a prompt, without what a step costs once.
  double PrefillSeconds(uint32_t begin, uint32_t end) const {
    return model_.TokenSeconds(begin, end);
  }

  const EngineTime& time() const { return time_; }  ///< as of the last EndStep, restarts included
  uint32_t running() const { return scheduler_.running(); }
  uint32_t waiting() const { return scheduler_.waiting(); }
  uint64_t preemptions() const { return preemptions_; }
  uint64_t kv_tokens_held() const;    ///< in blocks that a sequence holds
  uint64_t kv_tokens_cached() const;  ///< published, held or not
  uint64_t kv_capacity_tokens() const;

 private:
  struct Live {
    uint64_t request = 0;
    uint32_t output_tokens = 0;              // that it wants
    uint32_t produced = 0;                   // of them
    uint32_t static_tokens = 0;              // of its prompt
    size_t prompt_names = 0;                 // KV blocks with a name
    std::vector<Sha256Digest> answer_names;  // of those that follow
  };

  std::vector<Sha256Digest> NamesOf(const prompt::Identity& prompt) const;
  EngineTime CostOf(const sched::StepPlan& plan);
  EngineTime PrefillCost(const sched::SeqState& seq, uint32_t end, uint32_t static_tokens) const;
  struct Backlog;
  void AddTo(Backlog& backlog, const sched::SeqState& seq, const Live& live) const;
  void Deliver(SeqId id);
  void Remove(SeqId id);
  uint64_t TokensOf(uint32_t blocks) const { return uint64_t{blocks} * options_.block_size; }

  EngineOptions options_;
  StepModel model_;
  sched::Scheduler scheduler_;
  uint64_t next_ = 1;
  boost::unordered_flat_map<SeqId, Live, std::hash<SeqId>> live_;
  boost::unordered_flat_map<uint64_t, SeqId> by_request_;

  sched::StepPlan plan_;  // of the step under way, else empty
  EngineTime step_;       // of the step under way
  std::vector<StepShape::Chunk> chunks_;
  std::vector<SeqId> cancelled_;  // during it
  std::vector<StepEvent> events_;
  EngineTime time_;
  uint64_t preemptions_ = 0;
};

}  // namespace hidane::sim
