#pragma once
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/eviction_stats.h"
#include "obs/metrics.h"
#include "sched/scheduler.h"

namespace hidane::engine {

/// The engine's metrics: vLLM's names where vLLM has one, `hidane_engine_*` beside them, all with
/// the label model_name. Written by the engine thread; README.md says what divides by what.
class Probe {
 public:
  Probe(obs::Registry& registry, const std::string& model_name, const EngineStats& fixed);

  void OnStats(const EngineStats& stats);
  void OnFirstAdmission(uint32_t prompt_tokens, uint32_t cached_tokens);
  /// `n`: so far.
  void OnPreempted(uint64_t n) { preemptions_.Add(n - preemptions_.value()); }
  void OnFirstToken(uint32_t prompt_tokens, Duration since_submit);
  void OnNextToken(Duration since_last) { itl_.Observe(Seconds(since_last)); }
  void OnToken() { generation_tokens_.Add(); }
  void OnFinish(Finish finish);
  void OnEviction(const EvictionStats& stats);
  /// `busy`: CPU time of the step, shared out evenly over its tokens.
  void OnStep(const sched::StepTally& tally, Duration busy);

 private:
  obs::Labels labels_;
  obs::Gauge &running_, &waiting_, &kv_usage_;
  obs::Counter &queries_, &hits_, &prompt_tokens_, &generation_tokens_, &preemptions_;
  obs::Histogram &ttft_, &itl_;
  obs::Counter &stopped_, &length_, &aborted_, &failed_;
  obs::Counter &steps_, &prefill_tokens_, &recomputed_tokens_;
  obs::RealCounter &busy_, &prefill_, &decode_, &recompute_;
  obs::Counter &evicted_, &epochs_, &moves_, &blocks_freed_, &saved_;
  obs::RealCounter &eviction_wait_, &eviction_busy_;
  EvictionStats seen_;  // as counted
};

}  // namespace hidane::engine
