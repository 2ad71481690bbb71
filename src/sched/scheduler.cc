#include "sched/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace hidane::sched {

Scheduler::Scheduler(const SchedulerOptions& options)
    : options_(options), cache_(options.kv_blocks), ghost_(options.ghost_blocks) {
  HIDANE_ASSERT(options.kv_blocks > 0 && options.block_size > 0);
  HIDANE_ASSERT(options.tokens_max > 0 && options.seqs_max > 0);
  options_.seqs_max = std::min(options_.seqs_max, options_.tokens_max);
}

void Scheduler::Add(SeqId id, std::vector<TokenId> prompt, std::string_view salt) {
  HIDANE_ASSERT(!prompt.empty() && Fits(prompt.size()));
  HIDANE_ASSERT(seqs_.empty() || seqs_.rbegin()->first < id);
  SeqState& seq = seqs_[id];
  seq.prompt_tokens = static_cast<uint32_t>(prompt.size());
  seq.tokens = std::move(prompt);
  seq.salt = salt;
  if (options_.prefix_cache) {
    digester_.Extend(seq.tokens, options_.block_size, seq.salt, seq.chain);
  }
}

bool Scheduler::Remove(SeqId id) {
  const auto at = seqs_.find(id);
  if (at == seqs_.end()) return false;
  if (at->second.running) Leave(at->second);
  seqs_.erase(at);
  return true;
}

void Scheduler::Append(SeqId id, TokenId token) {
  SeqState& seq = seqs_.at(id);
  HIDANE_ASSERT(seq.computed == seq.tokens.size());
  seq.tokens.push_back(token);
  if (options_.prefix_cache) {
    digester_.Extend(seq.tokens, options_.block_size, seq.salt, seq.chain);
  }
}

uint32_t Scheduler::HitMax(const SeqState& seq) const {
  const size_t before_last = (seq.tokens.size() - 1) / options_.block_size;
  return static_cast<uint32_t>(std::min(seq.chain.size(), before_last));
}

RunningSeq Scheduler::View(SeqId id, const SeqState& seq) const {
  RunningSeq view{.id = id};
  view.tokens_left = static_cast<uint32_t>(seq.tokens.size()) - seq.computed;
  view.blocks_wanted = BlocksOf(seq.computed + 1) > seq.table.size() ? 1 : 0;
  for (const BlockId block : seq.table) view.blocks_given += *cache_.RefCount(block) == 1;
  return view;
}

WaitingSeq Scheduler::WaitingView(SeqId id, const SeqState& seq) const {
  const uint32_t hit_max = HitMax(seq);
  const KvCache::Hit hit = cache_.Find(std::span(seq.chain).first(hit_max));
  WaitingSeq view{.id = id};
  view.tokens_left = static_cast<uint32_t>(seq.tokens.size()) - hit.blocks * options_.block_size;
  view.blocks_wanted = static_cast<uint32_t>(BlocksOf(seq.tokens.size())) - hit.blocks + hit.free;
  if (hit.blocks < seq.chain.size()) {
    view.computes = &seq.chain[hit.blocks];
    view.waits_for_it = hit.blocks < hit_max;
    view.in_flight = in_flight_.contains(*view.computes);
  }
  return view;
}

StepPlan Scheduler::Plan() const {
  std::vector<RunningSeq> running;
  std::vector<WaitingSeq> waiting;
  // No more than seqs_max can come in, and a look costs a hash lookup per block of the hit.
  const size_t looks = running_ < options_.seqs_max ? options_.seqs_max : 0;
  for (const auto& [id, seq] : seqs_) {
    if (seq.running) {
      running.push_back(View(id, seq));
    } else if (waiting.size() < looks) {
      waiting.push_back(WaitingView(id, seq));
    }
  }
  return PlanStep(running, waiting,
                  {.tokens_max = options_.tokens_max,
                   .seqs_max = options_.seqs_max,
                   .blocks_free = cache_.blocks_free()});
}

void Scheduler::Commit(const StepPlan& plan) {
  for (const SeqId id : plan.preempt) Leave(seqs_.at(id));
  // Every hit is held before any block is allocated, so that none of them is handed out anew.
  for (const SeqId id : plan.admit) Admit(seqs_.at(id));
  const auto cover = [&](SeqState& seq, uint64_t tokens) {
    while (seq.table.size() < BlocksOf(tokens)) {
      const auto block = cache_.Allocate();
      HIDANE_ASSERT(block);  // the plan counted it
      seq.table.push_back(*block);
    }
  };
  for (const StepPlan::Item& item : plan.run) {
    SeqState& seq = seqs_.at(item.id);
    cover(seq, std::max<uint64_t>(seq.computed + item.n_tokens, seq.prefill_end));
  }
}

void Scheduler::Admit(SeqState& seq) {
  const KvCache::Hit hit = cache_.Find(std::span(seq.chain).first(HitMax(seq)));
  cache_.Hold(std::span(seq.chain).first(hit.blocks), seq.table);
  seq.computed = hit.blocks * options_.block_size;
  seq.prefill_end = static_cast<uint32_t>(seq.tokens.size());
  size_t ghost = hit.blocks;
  while (ghost < seq.chain.size() && ghost_.Contains(seq.chain[ghost])) ++ghost;
  seq.ghost_end = static_cast<uint32_t>(ghost) * options_.block_size;
  for (size_t i = hit.blocks; i < seq.chain.size(); ++i) in_flight_.insert(seq.chain[i]);
  if (seq.admissions++ == 0) seq.cached_tokens = seq.computed;
  seq.running = true;
  ++running_;
}

void Scheduler::Leave(SeqState& seq) {
  const size_t prefill_blocks =
      std::min<size_t>(seq.chain.size(), seq.prefill_end / options_.block_size);
  for (size_t i = seq.computed / options_.block_size; i < prefill_blocks; ++i) {
    in_flight_.erase(seq.chain[i]);
  }
  cache_.ReleaseTable(seq.table);
  seq.table.clear();
  seq.computed = 0;
  seq.running = false;
  --running_;
}

StepTally Scheduler::Complete(const StepPlan& plan) {
  StepTally tally;
  for (const StepPlan::Item& item : plan.run) {
    SeqState& seq = seqs_.at(item.id);
    const uint32_t before = seq.computed;
    seq.computed += item.n_tokens;
    const auto upto = [&](uint32_t end) { return std::clamp(end, before, seq.computed) - before; };
    tally.prefill += upto(seq.prefill_end);
    tally.decode += item.n_tokens - upto(seq.prefill_end);
    tally.recomputed += upto(std::min(seq.ghost_end, seq.prefill_end));
    PublishFilled(seq, before);
  }
  return tally;
}

void Scheduler::PublishFilled(SeqState& seq, uint32_t computed_before) {
  const size_t end = std::min<size_t>(seq.chain.size(), seq.computed / options_.block_size);
  for (size_t i = computed_before / options_.block_size; i < end; ++i) {
    seq.table[i] = cache_.Publish(seq.chain[i], seq.table[i]);
    ghost_.Add(seq.chain[i]);
    in_flight_.erase(seq.chain[i]);
  }
}

void Scheduler::ResetPrefixCache() {
  cache_.Clear();
  ghost_.Clear();
}

}  // namespace hidane::sched
