#include "engine/probe.h"

#include <fmt/format.h>

namespace hidane::engine {
namespace {

obs::Labels With(obs::Labels labels, std::string name, std::string value) {
  labels.emplace_back(std::move(name), std::move(value));
  return labels;
}

obs::Counter& Finished(obs::Registry& r, const obs::Labels& labels, const char* reason) {
  return r.counter("vllm:request_success_total", "Requests ended, by reason.",
                   With(labels, "finished_reason", reason));
}

}  // namespace

Probe::Probe(obs::Registry& r, const std::string& model_name, const EngineStats& fixed)
    : labels_{{"model_name", model_name}},
      running_(r.gauge("vllm:num_requests_running", "Sequences that hold KV blocks.", labels_)),
      waiting_(r.gauge("vllm:num_requests_waiting", "Sequences that wait for them.", labels_)),
      kv_usage_(
          r.gauge("vllm:kv_cache_usage_perc", "Share of KV blocks that are held, 0..1.", labels_)),
      queries_(r.counter("vllm:prefix_cache_queries_total",
                         "Prompt tokens looked up in the prefix cache.", labels_)),
      hits_(r.counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.",
                      labels_)),
      prompt_tokens_(r.counter("vllm:prompt_tokens_total",
                               "Prompt tokens of requests that got "
                               "their first token, cached ones included.",
                               labels_)),
      generation_tokens_(r.counter("vllm:generation_tokens_total", "Tokens generated.", labels_)),
      preemptions_(
          r.counter("vllm:num_preemptions_total", "Sequences sent back to wait.", labels_)),
      ttft_(r.histogram("vllm:time_to_first_token_seconds", "From Submit to the first token.",
                        obs::LatencyBounds(), labels_)),
      itl_(r.histogram("vllm:inter_token_latency_seconds", "Between two tokens of a request.",
                       obs::LatencyBounds(), labels_)),
      stopped_(Finished(r, labels_, "stop")),
      length_(Finished(r, labels_, "length")),
      aborted_(Finished(r, labels_, "abort")),
      failed_(Finished(r, labels_, "error")),
      steps_(r.counter("hidane_engine_steps_total", "Steps computed.", labels_)),
      prefill_tokens_(r.counter("hidane_engine_prefill_tokens_total",
                                "Tokens computed to prefill "
                                "sequences, again after a preemption included.",
                                labels_)),
      recomputed_tokens_(r.counter(
          "hidane_engine_recomputed_tokens_total",
          "Prefill tokens in blocks that this engine once held: computed again.", labels_)),
      busy_(r.real_counter("hidane_engine_busy_seconds_total", "CPU time of the engine's steps.",
                           labels_)),
      prefill_(r.real_counter("hidane_engine_prefill_seconds_total",
                              "Busy time by prefill tokens' share of each step.", labels_)),
      decode_(r.real_counter("hidane_engine_decode_seconds_total",
                             "Busy time by decode tokens' share of each step.", labels_)),
      recompute_(r.real_counter("hidane_engine_recompute_seconds_total",
                                "Busy time by recomputed tokens' share of each step.", labels_)),
      evicted_(r.counter("hidane_engine_kv_evicted_total",
                         "Tokens evicted, once per unit that loses them.", labels_)),
      epochs_(r.counter("hidane_engine_kv_epochs_total", "Steps after which tokens were evicted.",
                        labels_)),
      moves_(r.counter("hidane_engine_kv_moves_total", "Rows copied to fill holes, per unit.",
                       labels_)),
      blocks_freed_(r.counter("hidane_engine_kv_blocks_freed_total",
                              "Blocks given back by evictions.", labels_)),
      saved_(r.counter("hidane_engine_kv_saved_total",
                       "Times a sequence's K/V left its blocks, to come back later.", labels_)),
      eviction_wait_(r.real_counter("hidane_engine_kv_wait_seconds_total",
                                    "Time that steps waited for moves.", labels_)),
      eviction_busy_(r.real_counter("hidane_engine_kv_eviction_seconds_total",
                                    "The engine thread's time in eviction, waits included.",
                                    labels_)) {
  auto config = With(labels_, "block_size", fmt::to_string(fixed.block_size));
  config = With(std::move(config), "num_gpu_blocks", fmt::to_string(fixed.kv_blocks));
  r.gauge("vllm:cache_config_info", "The KV cache's shape, in labels.", config).Set(1);
  OnStats(fixed);
}

void Probe::OnStats(const EngineStats& stats) {
  running_.Set(stats.running);
  waiting_.Set(stats.waiting);
  kv_usage_.Set(stats.kv_usage);
}

void Probe::OnFirstAdmission(uint32_t prompt_tokens, uint32_t cached_tokens) {
  queries_.Add(prompt_tokens);
  hits_.Add(cached_tokens);
}

void Probe::OnFirstToken(uint32_t prompt_tokens, Duration since_submit) {
  prompt_tokens_.Add(prompt_tokens);
  ttft_.Observe(Seconds(since_submit));
}

void Probe::OnFinish(Finish finish) {
  switch (finish) {
    case Finish::kStop:
      return stopped_.Add();
    case Finish::kLength:
      return length_.Add();
    case Finish::kCancelled:
      return aborted_.Add();
    case Finish::kError:
      return failed_.Add();
    case Finish::kNone:
      return;
  }
}

void Probe::OnEviction(const EvictionStats& stats) {
  if (stats.saved == seen_.saved && stats.busy == seen_.busy) return;
  evicted_.Add(stats.evicted - seen_.evicted);
  epochs_.Add(stats.epochs - seen_.epochs);
  moves_.Add(stats.moves - seen_.moves);
  blocks_freed_.Add(stats.blocks_freed - seen_.blocks_freed);
  saved_.Add(stats.saved - seen_.saved);
  eviction_wait_.Add(Seconds(stats.wait - seen_.wait));
  eviction_busy_.Add(Seconds(stats.busy - seen_.busy));
  seen_ = stats;
}

void Probe::OnStep(const sched::StepTally& tally, Duration busy) {
  busy_.Add(Seconds(busy));
  if (tally.total() == 0) return;
  const double a_token = Seconds(busy) / tally.total();
  steps_.Add();
  prefill_tokens_.Add(tally.prefill);
  recomputed_tokens_.Add(tally.recomputed);
  prefill_.Add(a_token * tally.prefill);
  decode_.Add(a_token * tally.decode);
  recompute_.Add(a_token * tally.recomputed);
}

}  // namespace hidane::engine
