#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "sched/scheduler.h"
#include "sim/gpu.h"
#include "sim/request.h"

namespace hidane::sim {

struct EngineOptions {
  GpuSetup gpu;
  uint32_t block_size = 64;  ///< tokens of a KV block
  uint32_t max_num_batched_tokens = 8'192;
  uint32_t max_num_seqs = 256;
};

/// What happened to one request in a step.
struct StepEvent {
  enum class Kind : uint8_t { kFirstToken, kFinished };
  Kind kind;
  uint64_t id;
  uint32_t cached_tokens;  ///< of its prompt, found at its first admission
};

/// Where an engine's time went, in seconds of busy time.
struct EngineTime {
  double busy = 0;
  double static_prefill = 0;    ///< on static tokens (before k1_end), first sight included
  double static_recompute = 0;  ///< of it: tokens that this engine once held
  double recompute = 0;         ///< on any tokens that it once held
};

/// One serving engine in virtual time: the real scheduler, prefix cache and block pool, with the
/// step model in place of the GPU. The owner turns the crank:
///
///   Submit ... -> BeginStep() = how long -> (that much later) EndStep() -> BeginStep() ...
///
/// Requests that arrive during a step are seen by the next one. Not thread-safe.
class Engine {
 public:
  explicit Engine(const EngineOptions& options);

  /// False: it could never fit the KV memory; nothing is kept.
  bool Submit(const Request& request);
  /// The client left. No-op for an unknown id. During a step it takes effect at its end.
  void Cancel(uint64_t id);
  /// REQUIRES: no step under way. nullopt: nothing to do.
  std::optional<Duration> BeginStep();
  /// REQUIRES: a step under way. Valid until the next call.
  std::span<const StepEvent> EndStep();
  bool stepping() const;
  /// The process dies and starts anew, empty. Returns the ids that were lost.
  std::vector<uint64_t> Restart();

  const EngineTime& time() const;
  uint32_t running() const;
  uint32_t waiting() const;
  uint64_t kv_tokens_held() const;    ///< in blocks that a sequence holds
  uint64_t kv_tokens_cached() const;  ///< published, held or not
  uint64_t kv_capacity_tokens() const;
};

}  // namespace hidane::sim
