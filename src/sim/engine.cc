#include "sim/engine.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "sim/block_names.h"

namespace hidane::sim {
namespace {

sched::SchedulerOptions SchedulerOptionsOf(const EngineOptions& o) {
  return {.kv_blocks = static_cast<uint32_t>(o.gpu.kv_capacity_tokens / o.block_size),
          .block_size = o.block_size,
          .tokens_max = o.max_num_batched_tokens,
          .seqs_max = o.max_num_seqs,
          .eviction = o.eviction};
}

}  // namespace

EngineTime& EngineTime::operator+=(const EngineTime& other) {
  busy += other.busy;
  prefill += other.prefill;
  static_prefill += other.static_prefill;
  static_recompute += other.static_recompute;
  recompute += other.recompute;
  return *this;
}

Engine::Engine(const EngineOptions& options)
    : options_(options), model_(options.gpu), scheduler_(SchedulerOptionsOf(options)) {}

bool Engine::Submit(const Request& request) {
  const prompt::Identity& prompt = request.prompt;
  HIDANE_ASSERT(prompt.tokens > 0 && request.output_tokens > 0);
  if (!scheduler_.Fits(uint64_t{prompt.tokens} + request.output_tokens)) return false;
  const SeqId id(next_++);
  HIDANE_ASSERT(by_request_.emplace(request.id, id).second);
  Live& live = live_[id];
  live.request = request.id;
  live.output_tokens = request.output_tokens;
  live.static_tokens = prompt.BytesAt(prompt.k1_end);
  auto names = NamesOf(prompt);
  live.prompt_names = names.size();
  live.answer_names =
      NameBlocks(request.answer_chain, request.answer_ends, options_.block_size, live.prompt_names);
  scheduler_.Add(id, prompt.tokens, std::move(names));
  return true;
}

std::vector<Sha256Digest> Engine::NamesOf(const prompt::Identity& prompt) const {
  const size_t cached = options_.cache_tails ? prompt.size() : prompt.k1_end;
  return NameBlocks(std::span(prompt.chain).first(cached), std::span(prompt.ends).first(cached),
                    options_.block_size);
}

void Engine::Cancel(uint64_t id) {
  const auto at = by_request_.find(id);
  if (at == by_request_.end()) return;
  if (stepping()) {
    cancelled_.push_back(at->second);
  } else {
    Remove(at->second);
  }
}

std::optional<Duration> Engine::BeginStep() {
  HIDANE_ASSERT(!stepping());
  plan_ = scheduler_.Plan();
  if (plan_.run.empty()) return std::nullopt;
  scheduler_.Commit(plan_);
  preemptions_ += plan_.preempt.size();
  step_ = CostOf(plan_);
  return ToDuration(step_.busy);
}

// A chunk of one token is computed as a decode is, whatever it is.
EngineTime Engine::CostOf(const sched::StepPlan& plan) {
  chunks_.clear();
  EngineTime tokens;  // of prefill, without what the step costs once
  StepShape shape;
  for (const sched::StepPlan::Item& item : plan.run) {
    const sched::SeqState& seq = scheduler_.state(item.id);
    if (item.n_tokens == 1) {
      ++shape.decode_seqs;
      shape.decode_kv_tokens += seq.computed + 1;
      continue;
    }
    chunks_.push_back({.new_tokens = item.n_tokens, .cached_tokens = seq.computed});
    tokens += PrefillCost(seq, seq.computed + item.n_tokens, live_.at(item.id).static_tokens);
  }
  shape.prefill = chunks_;
  EngineTime cost{.busy = model_.Seconds(shape), .prefill = model_.PrefillSeconds(chunks_)};
  if (chunks_.empty()) return cost;
  const double scale = cost.prefill / tokens.prefill;
  cost.static_prefill = tokens.static_prefill * scale;
  cost.static_recompute = tokens.static_recompute * scale;
  cost.recompute = tokens.recompute * scale;
  return cost;
}

EngineTime Engine::PrefillCost(const sched::SeqState& seq, uint32_t end,
                               uint32_t static_tokens) const {
  const uint32_t begin = seq.computed;
  const uint32_t held = std::min(end, seq.ghost_end);
  return {.prefill = model_.TokenSeconds(begin, end),
          .static_prefill = model_.TokenSeconds(begin, std::min(end, static_tokens)),
          .static_recompute = model_.TokenSeconds(begin, std::min(held, static_tokens)),
          .recompute = model_.TokenSeconds(begin, held)};
}

std::span<const StepEvent> Engine::EndStep() {
  HIDANE_ASSERT(stepping());
  scheduler_.Complete(plan_);
  const sched::StepPlan plan = std::exchange(plan_, {});
  time_ += step_;
  events_.clear();
  for (const SeqId id : cancelled_) Remove(id);
  cancelled_.clear();
  for (const sched::StepPlan::Item& item : plan.run) Deliver(item.id);
  return events_;
}

void Engine::Deliver(SeqId id) {
  const auto at = live_.find(id);
  if (at == live_.end()) return;  // cancelled
  Live& live = at->second;
  const sched::SeqState& seq = scheduler_.state(id);
  if (seq.computed < seq.tokens) return;  // more of its prompt to come
  const auto tell = [&](StepEvent::Kind kind) {
    events_.push_back({kind, live.request, seq.cached_tokens});
  };
  if (++live.produced == 1) tell(StepEvent::Kind::kFirstToken);
  if (live.produced == live.output_tokens) {
    tell(StepEvent::Kind::kFinished);
    return Remove(id);
  }
  const size_t named = seq.chain.size() - live.prompt_names;  // of the answer
  const bool fills = (seq.chain.size() + 1) * options_.block_size == seq.tokens + 1;
  if (fills && named < live.answer_names.size()) {
    scheduler_.Append(id, live.answer_names[named]);
  } else {
    scheduler_.Append(id);
  }
}

void Engine::Remove(SeqId id) {
  const auto at = live_.find(id);
  if (at == live_.end()) return;  // cancelled twice
  scheduler_.Remove(id);
  by_request_.erase(at->second.request);
  live_.erase(at);
}

std::vector<uint64_t> Engine::Restart() {
  std::vector<std::pair<SeqId, uint64_t>> lost;
  for (const auto& [id, live] : live_) lost.emplace_back(id, live.request);
  std::ranges::sort(lost);
  scheduler_ = sched::Scheduler(SchedulerOptionsOf(options_));
  live_.clear();
  by_request_.clear();
  cancelled_.clear();
  plan_ = {};
  std::vector<uint64_t> ids;
  for (const auto& [id, request] : lost) ids.push_back(request);
  return ids;
}

uint64_t Engine::kv_tokens_held() const {
  return TokensOf(scheduler_.cache().blocks() - scheduler_.cache().blocks_free());
}
uint64_t Engine::kv_tokens_cached() const {
  return TokensOf(scheduler_.cache().blocks_published());
}
uint64_t Engine::kv_capacity_tokens() const {
  return TokensOf(scheduler_.cache().blocks());
}

}  // namespace hidane::sim
