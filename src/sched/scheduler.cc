#include "sched/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace hidane::sched {
namespace {

// `line` is sorted by arrival.
void Enter(auto& line, SeqState& seq) {
  const auto before = [](SeqId id, const SeqState* other) { return id < other->id; };
  line.insert(std::upper_bound(line.begin(), line.end(), seq.id, before), &seq);
}
void Quit(auto& line, const SeqState& seq) {
  const auto before = [](const SeqState* other, SeqId id) { return other->id < id; };
  line.erase(std::lower_bound(line.begin(), line.end(), seq.id, before));
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options)
    : options_(options), cache_(options.kv_blocks, options.eviction), ghost_(options.ghost_blocks) {
  HIDANE_ASSERT(options.kv_blocks > 0 && options.block_size > 0);
  HIDANE_ASSERT(options.tokens_max > 0 && options.seqs_max > 0);
  options_.seqs_max = std::min(options_.seqs_max, options_.tokens_max);
}

void Scheduler::Add(SeqId id, uint32_t prompt_tokens, std::vector<Sha256Digest> chain,
                    std::optional<Evictable> evictable) {
  HIDANE_ASSERT(prompt_tokens > 0 && Fits(prompt_tokens));
  HIDANE_ASSERT(chain.size() <= prompt_tokens / options_.block_size);
  HIDANE_ASSERT(last_ < id);
  last_ = id;
  auto seq = std::make_unique<SeqState>();
  seq->id = id;
  seq->chain = std::move(chain);
  seq->prompt_tokens = seq->tokens = prompt_tokens;
  seq->evictable = evictable;
  waiting_.push_back(seq.get());
  seqs_.emplace(id, std::move(seq));
}

bool Scheduler::Remove(SeqId id) {
  const auto at = seqs_.find(id);
  if (at == seqs_.end()) return false;
  SeqState& seq = *at->second;
  if (seq.running) {
    Leave(seq);
  } else {
    Quit(waiting_, seq);
  }
  seqs_.erase(at);
  return true;
}

std::optional<std::vector<BlockCopy>> Scheduler::Fork(SeqId parent, SeqId id,
                                                      std::span<const uint32_t> written) {
  const SeqState& from = *seqs_.at(parent);
  HIDANE_ASSERT(from.computed == from.tokens && parent < id && !seqs_.contains(id));
  auto fork = std::make_unique<SeqState>(from);
  fork->id = id;
  fork->table.clear();
  fork->running =
      from.running && running_.size() < options_.seqs_max && written.size() <= cache_.blocks_free();
  if (!fork->running && !fork->evictable) fork->computed = 0;
  SeqState& seq = *seqs_.emplace(id, std::move(fork)).first->second;
  if (!seq.running) {
    Enter(waiting_, seq);
    return std::nullopt;
  }
  Enter(running_, seq);
  return Share(from, seq, written);
}

std::vector<BlockCopy> Scheduler::Share(const SeqState& parent, SeqState& fork,
                                        std::span<const uint32_t> written) {
  const size_t used =
      std::max<size_t>(BlocksOf(parent.active()), written.empty() ? 0 : written.back() + 1);
  std::vector<BlockCopy> copies;
  for (size_t i = 0; i < used; ++i) {
    BlockId block = parent.table[i];
    if (copies.size() < written.size() && written[copies.size()] == i) {
      block = *cache_.Allocate();
      copies.push_back({parent.table[i], block});
    } else {
      HIDANE_ASSERT(cache_.Retain(block));
    }
    fork.table.push_back(block);
  }
  HIDANE_ASSERT(copies.size() == written.size());
  return copies;
}

void Scheduler::Append(SeqId id, const std::optional<Sha256Digest>& filled) {
  SeqState& seq = *seqs_.at(id);
  HIDANE_ASSERT(!seq.running || seq.computed == seq.tokens);
  ++seq.tokens;
  if (!filled) return;
  HIDANE_ASSERT((seq.chain.size() + 1) * options_.block_size == seq.tokens);
  seq.chain.push_back(*filled);
}

void Scheduler::Preempt(SeqId id) {
  SeqState& seq = *seqs_.at(id);
  HIDANE_ASSERT(seq.running);
  ++preemptions_;
  Leave(seq);
  Enter(waiting_, seq);
}

void Scheduler::Evict(SeqId id, std::span<const BlockId> table, uint32_t evicted,
                      uint32_t slots_max) {
  SeqState& seq = *seqs_.at(id);
  HIDANE_ASSERT(seq.evictable && seq.running);
  HIDANE_ASSERT(seq.evicted <= evicted && evicted < seq.computed);
  seq.evicted = evicted;
  seq.slots_max = slots_max;
  seq.table.assign(table.begin(), table.end());
  HIDANE_ASSERT(seq.table.size() >= BlocksOf(seq.active()));
  cache_.BreakChains();
  seq.publishes = false;  // K/V of what comes now depend on what is gone
}

std::span<const Sha256Digest> Scheduler::HitMax(const SeqState& seq) const {
  if (seq.computed > 0) return {};  // its K/V come back from its owner
  uint32_t tokens = seq.tokens - 1;
  if (seq.evictable) tokens = std::min(tokens, seq.evictable->hit_tokens_max);
  return std::span(seq.chain).first(
      std::min<size_t>(seq.chain.size(), tokens / options_.block_size));
}

std::vector<RunningSeq> Scheduler::RunningViews() const {
  std::vector<RunningSeq> views;
  views.reserve(running_.size());
  uint32_t wanted = 0;
  for (const SeqState* seq : running_) {
    RunningSeq& view = views.emplace_back();
    view.id = seq->id;
    view.tokens_left = seq->tokens - seq->computed;
    view.blocks_wanted = seq->table.size() * options_.block_size == seq->active() ? 1 : 0;
    view.grows = seq->table.size() * options_.block_size < seq->slots_max;
    wanted += view.blocks_wanted;
    const size_t next = seq->computed / options_.block_size;
    if (seq->publishes && seq->computed < seq->prefill_end && next < seq->chain.size()) {
      view.computes = &seq->chain[next];
    }
  }
  if (wanted <= cache_.blocks_free()) return views;
  for (size_t i = 0; i < views.size(); ++i) {
    for (const BlockId block : running_[i]->table) {
      views[i].blocks_given += *cache_.RefCount(block) == 1;
    }
  }
  return views;
}

WaitingSeq Scheduler::View(const SeqState& seq) const {
  const auto hit_max = HitMax(seq);
  const KvCache::Hit hit = cache_.Find(hit_max);
  WaitingSeq view{.id = seq.id};
  view.tokens_left = seq.tokens - std::max(seq.computed, hit.blocks * options_.block_size);
  view.blocks_wanted = BlocksOf(seq.tokens - seq.evicted) - hit.blocks + hit.free;
  if (hit.blocks < seq.chain.size() && seq.computed == 0) view.computes = &seq.chain[hit.blocks];
  view.waits_for_it = hit.blocks < hit_max.size();
  return view;
}

StepPlan Scheduler::Plan() const {
  auto next = waiting_.begin();
  const NextWaiting next_waiting = [&]() -> std::optional<WaitingSeq> {
    if (next == waiting_.end()) return std::nullopt;
    return View(**next++);
  };
  return PlanStep(RunningViews(), next_waiting,
                  {.tokens_max = options_.tokens_max,
                   .seqs_max = options_.seqs_max,
                   .blocks_free = cache_.blocks_free()});
}

void Scheduler::Commit(const StepPlan& plan) {
  for (const SeqId id : plan.preempt) Preempt(id);
  // Every hit is held before any block is allocated, so that none of them is handed out anew.
  for (const SeqId id : plan.admit) Admit(*seqs_.at(id));
  for (const StepPlan::Item& item : plan.run) {
    SeqState& seq = *seqs_.at(item.id);
    Cover(seq, std::max(seq.computed + item.n_tokens, seq.prefill_end) - seq.evicted);
  }
}

void Scheduler::Cover(SeqState& seq, uint32_t slots) {
  while (seq.table.size() * options_.block_size < slots) {
    const auto block = cache_.Allocate();
    HIDANE_ASSERT(block);  // the plan counted it
    seq.table.push_back(*block);
  }
}

void Scheduler::Admit(SeqState& seq) {
  const auto hit = HitMax(seq).first(cache_.Find(HitMax(seq)).blocks);
  seq.table.reserve(BlocksOf(seq.tokens - seq.evicted) + 1);
  cache_.Hold(hit, seq.table);
  seq.publishes = seq.computed == 0;
  if (seq.computed == 0) seq.computed = static_cast<uint32_t>(hit.size()) * options_.block_size;
  seq.prefill_end = seq.tokens;
  seq.found_blocks = static_cast<uint32_t>(hit.size());
  size_t ghost = hit.size();
  while (ghost < seq.chain.size() && ghost_.Contains(seq.chain[ghost])) ++ghost;
  seq.ghost_end = static_cast<uint32_t>(ghost) * options_.block_size;
  if (seq.admissions++ == 0) seq.cached_tokens = seq.computed;
  seq.running = true;
  Quit(waiting_, seq);
  Enter(running_, seq);
}

void Scheduler::Leave(SeqState& seq) {
  cache_.ReleaseTable(seq.table);
  seq.table.clear();
  if (!seq.evictable) seq.computed = 0;
  seq.running = false;
  Quit(running_, seq);
}

StepTally Scheduler::Complete(const StepPlan& plan) {
  StepTally tally;
  for (const StepPlan::Item& item : plan.run) {
    SeqState& seq = *seqs_.at(item.id);
    const uint32_t before = seq.computed;
    seq.computed += item.n_tokens;
    const auto upto = [&](uint32_t end) { return std::clamp(end, before, seq.computed) - before; };
    tally.prefill += upto(seq.prefill_end);
    tally.decode += item.n_tokens - upto(seq.prefill_end);
    tally.recomputed += upto(std::min(seq.ghost_end, seq.prefill_end));
    if (seq.publishes) PublishFilled(seq, before);
  }
  return tally;
}

void Scheduler::PublishFilled(SeqState& seq, uint32_t computed_before) {
  const size_t end = std::min<size_t>(seq.chain.size(), seq.computed / options_.block_size);
  for (size_t i = computed_before / options_.block_size; i < end; ++i) {
    const BlockId mine = std::exchange(seq.table[i], cache_.Publish(seq.chain[i], seq.table[i]));
    if (seq.table[i] != mine) seq.found_blocks = static_cast<uint32_t>(i) + 1;
    ghost_.Add(seq.chain[i]);
  }
}

void Scheduler::ResetPrefixCache() {
  cache_.Clear();
  ghost_.Clear();
  // Blocks that follow forgotten ones could never be hit.
  for (SeqState* seq : running_) seq->publishes = false;
}

}  // namespace hidane::sched
