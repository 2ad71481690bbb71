#pragma once

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "sched/scheduler.h"

namespace hidane::sched {

/// What the scheduler's tests run with: memory is short, so that sequences meet and preempt.
inline constexpr SchedulerOptions kWorldOptions{
    .kv_blocks = 12, .block_size = 4, .tokens_max = 10, .seqs_max = 4};

/// Runs a scheduler against memory in which each slot remembers the context that it was computed
/// from, and against a map of what should be cached. Fails at the first wrong slot.
class World {
 public:
  explicit World(const SchedulerOptions& options, bool prefix_cache = true)
      : s(options),
        options_(options),
        prefix_cache_(prefix_cache),
        knows_cache_(prefix_cache),
        slots_(options.kv_blocks * options.block_size) {}

  Scheduler s;

  void Add(std::vector<TokenId> prompt, uint32_t generate, const std::string& salt = "") {
    const SeqId id = NextId();
    const auto chain = digester_.Chain(prompt, options_.block_size, salt);
    s.Add(id, static_cast<uint32_t>(prompt.size()), prefix_cache_ ? chain : decltype(chain){});
    const size_t goal = prompt.size() + generate;
    goals_[id] = {.salt = salt, .tokens = std::move(prompt), .tokens_wanted = goal};
  }

  /// A sequence from which tokens are evicted between steps, at random.
  void AddEvictable(std::vector<TokenId> prompt, uint32_t generate, uint32_t hit_tokens_max) {
    const SeqId id = NextId();
    const auto chain = digester_.Chain(prompt, options_.block_size, "");
    s.Add(id, static_cast<uint32_t>(prompt.size()), prefix_cache_ ? chain : decltype(chain){},
          Evictable{hit_tokens_max});
    const size_t goal = prompt.size() + generate;
    goals_[id] = {.tokens = std::move(prompt), .tokens_wanted = goal, .evictable = true};
  }

  void Remove(uint32_t nth) {
    if (goals_.empty()) return;
    const auto at = std::next(goals_.begin(), nth % goals_.size());
    RC_ASSERT(s.Remove(at->first));
    goals_.erase(at);
  }

  StepTally Step() {
    const StepPlan plan = s.Plan();
    CheckPlan(plan);
    std::map<SeqId, uint32_t> hits;  // blocks
    for (const SeqId id : plan.admit) hits[id] = CachedBlocks(id);
    std::map<SeqId, std::vector<BlockId>> tables;
    for (const auto& [id, _] : goals_) tables[id] = s.state(id).table;

    for (const SeqId id : plan.preempt) Save(id);
    s.Commit(plan);
    for (const auto& [id, expected] : hits) {
      if (!goals_.at(id).saved.empty()) {
        tables[id].clear();
        continue;
      }
      const uint32_t n = s.state(id).computed / options_.block_size;
      if (knows_cache_) RC_ASSERT(n == expected);
      tables[id] = {s.state(id).table.begin(), s.state(id).table.begin() + n};
    }
    for (const StepPlan::Item& item : plan.run) ForgetReused(item.id, tables[item.id].size());
    for (const StepPlan::Item& item : plan.run) BringBack(item.id);
    for (const StepPlan::Item& item : plan.run) Write(item);
    for (const StepPlan::Item& item : plan.run) CheckContext(item);
    const StepTally tally = s.Complete(plan);
    for (const StepPlan::Item& item : plan.run) Publish(item.id);
    for (const StepPlan::Item& item : plan.run) MaybeFork(item.id);
    for (const StepPlan::Item& item : plan.run) Generate(item.id);
    for (const StepPlan::Item& item : plan.run) Evict(item.id);
    CheckBlocks();
    return tally;
  }

  // Steps until nothing is live; each step must get some work done.
  uint32_t Drain() {
    uint32_t steps = 0;
    for (; !goals_.empty(); ++steps) {
      RC_ASSERT(!s.Plan().empty());
      RC_ASSERT(steps < 10000u);
      Step();
    }
    return steps;
  }

  // From here on the map doesn't know what is cached: tables outlive the reset.
  void Reset() {
    s.ResetPrefixCache();
    knows_cache_ = false;
  }

  /// From here on some sequences fork, each at most once.
  void LetFork() { forks_ = true; }

  bool live(uint64_t id) const { return goals_.contains(SeqId(id)); }
  bool idle() const { return goals_.empty(); }

 private:
  struct Goal {
    std::string salt{};
    std::vector<TokenId> tokens;
    size_t tokens_wanted;
    bool evictable = false;
    bool forked = false;
    uint64_t twist = 0;             // a fork says something else
    std::vector<uint32_t> gone{};   // evicted tokens
    std::vector<uint64_t> saved{};  // slots of a preempted one
  };

  // With forks, every other id is for one.
  SeqId NextId() { return SeqId(std::exchange(next_, next_ + (forks_ ? 2 : 1))); }

  void MaybeFork(SeqId id) {
    const SeqState& seq = s.state(id);
    Goal& goal = goals_.at(id);
    const uint64_t dice = Mix64(seq.tokens * 7 + id.value());
    if (!forks_ || goal.forked || seq.computed < seq.tokens || dice % 3 > 0) return;
    goal.forked = true;
    const SeqId twin(id.value() + 1);
    Goal& other = goals_[twin] = goal;
    other.twist = 1;
    const size_t room = options_.kv_blocks * options_.block_size;
    other.tokens_wanted = std::min(room, other.tokens_wanted + dice / 3 % 8);
    std::vector<uint32_t> written;
    const uint32_t b = options_.block_size;
    if (seq.active() % b != 0) written.push_back(seq.active() / b);
    const auto copies = s.Fork(id, twin, written);
    if (copies) {
      for (const BlockCopy& copy : *copies) {
        Forget(copy.to);
        std::copy_n(slots_.begin() + copy.from.value() * b, b,
                    slots_.begin() + copy.to.value() * b);
      }
    } else if (other.evictable) {
      for (uint32_t i = 0; i < seq.active(); ++i) other.saved.push_back(slots_[Slot(id, i)]);
    }
    Say(twin);
  }

  uint64_t Context(SeqId id, size_t n) const {
    uint64_t h = Mix64(Xxh3(goals_.at(id).salt));
    for (size_t i = 0; i < n; ++i) h = Mix64(h ^ static_cast<uint64_t>(goals_.at(id).tokens[i]));
    return h;
  }
  size_t Slot(SeqId id, size_t i) const {
    const uint32_t b = options_.block_size;
    return s.state(id).table[i / b].value() * b + i % b;
  }

  // What each slot of a sequence holds once `computed` tokens were: the live tokens in order.
  std::vector<uint64_t> Contents(SeqId id, uint32_t computed) const {
    const auto& gone = goals_.at(id).gone;
    std::vector<uint64_t> contents;
    for (uint32_t i = 0; i < computed; ++i) {
      if (!std::binary_search(gone.begin(), gone.end(), i)) contents.push_back(Context(id, i + 1));
    }
    return contents;
  }

  void Save(SeqId id) {
    Goal& goal = goals_.at(id);
    if (!goal.evictable) return;
    goal.saved.clear();
    for (uint32_t i = 0; i < s.state(id).active(); ++i) goal.saved.push_back(slots_[Slot(id, i)]);
  }
  void BringBack(SeqId id) {
    auto& saved = goals_.at(id).saved;
    for (size_t i = 0; i < saved.size(); ++i) slots_[Slot(id, i)] = saved[i];
    saved.clear();
  }

  // Evicts at random and packs the rest, in order: into its own blocks, and where another sequence
  // holds one, into a new block instead.
  void Evict(SeqId id) {
    const auto at = goals_.find(id);
    if (at == goals_.end() || !at->second.evictable) return;
    const SeqState& seq = s.state(id);
    Rng rng(seq.computed * 31 + id.value());
    if (rng.Below(12) == 0) {  // its owner sends it away, with all that it computed
      Save(id);
      return s.Preempt(id);
    }
    if (seq.computed < seq.prompt_tokens || rng.Below(3) > 0) return;
    auto& gone = at->second.gone;
    const size_t keep_every = 1 + rng.Below(3);
    std::vector<uint32_t> now = gone;
    for (uint32_t i = 0; i + 1 < seq.computed; ++i) {
      if (rng.Below(4) < keep_every || std::binary_search(gone.begin(), gone.end(), i)) continue;
      now.push_back(i);
    }
    std::sort(now.begin(), now.end());
    const size_t live = seq.computed - now.size();
    const size_t blocks = (live + options_.block_size - 1) / options_.block_size;
    std::vector<BlockId> table;
    for (const BlockId block : seq.table) {
      if (table.size() == blocks) {
        RC_ASSERT(s.cache().Release(block));
      } else if (*s.cache().RefCount(block) == 1) {
        RC_ASSERT(s.cache().Unpublish(block));
        Forget(block);
        table.push_back(block);
      } else {
        const auto fresh = s.cache().Allocate();
        if (!fresh) return Undo(id, table);
        Forget(*fresh);
        RC_ASSERT(s.cache().Release(block));
        table.push_back(*fresh);
      }
    }
    gone = std::move(now);
    s.Evict(id, table, static_cast<uint32_t>(gone.size()));
    const auto contents = Contents(id, seq.computed);
    RC_ASSERT(contents.size() == seq.active());
    for (size_t i = 0; i < contents.size(); ++i) slots_[Slot(id, i)] = contents[i];
  }
  // No memory for an eviction: what was unpublished stays so, the rest of the table is as it was.
  void Undo(SeqId id, const std::vector<BlockId>& taken) {
    std::vector<BlockId> table = s.state(id).table;
    std::copy(taken.begin(), taken.end(), table.begin());
    const uint32_t evicted = s.state(id).evicted;
    const auto contents = Contents(id, s.state(id).computed);
    s.Evict(id, table, evicted);
    for (size_t i = 0; i < contents.size(); ++i) {
      if (i / options_.block_size < taken.size()) slots_[Slot(id, i)] = contents[i];
    }
  }
  void Forget(BlockId block) {
    std::erase_if(cached_, [&](const auto& entry) { return entry.second == block; });
  }

  void CheckPlan(const StepPlan& plan) const {
    uint64_t tokens = 0;
    for (const StepPlan::Item& item : plan.run) tokens += item.n_tokens;
    RC_ASSERT(tokens <= options_.tokens_max);
    RC_ASSERT(s.running() + plan.admit.size() - plan.preempt.size() <= options_.seqs_max);
    for (const auto& [id, _] : goals_) {  // the oldest running always gets on
      if (!s.state(id).running) continue;
      RC_ASSERT(std::any_of(plan.run.begin(), plan.run.end(),
                            [oldest = id](const auto& item) { return item.id == oldest; }));
      break;
    }
  }

  uint32_t CachedBlocks(SeqId id) const {
    const uint32_t b = options_.block_size;
    uint32_t n = 0;
    const auto& evictable = s.state(id).evictable;
    const uint32_t end = evictable ? evictable->hit_tokens_max : UINT32_MAX;
    while ((n + 1) * b < s.state(id).tokens && (n + 1) * b <= end &&
           cached_.contains(Context(id, (n + 1) * b)))
      ++n;
    return n;
  }

  void ForgetReused(SeqId id, size_t old_blocks) {
    const auto& table = s.state(id).table;
    for (size_t i = old_blocks; i < table.size(); ++i) {
      RC_ASSERT(*s.cache().RefCount(table[i]) == 1u);
      Forget(table[i]);
    }
  }

  void Write(const StepPlan::Item& item) {
    const SeqState& seq = s.state(item.id);
    for (uint32_t i = seq.computed; i < seq.computed + item.n_tokens; ++i) {
      const uint32_t slot = i - seq.evicted;
      RC_ASSERT(*s.cache().RefCount(seq.table[slot / options_.block_size]) == 1u);
      slots_[Slot(item.id, slot)] = Context(item.id, i + 1);
    }
  }

  void CheckContext(const StepPlan::Item& item) const {
    const auto contents = Contents(item.id, s.state(item.id).computed + item.n_tokens);
    RC_ASSERT(contents.size() == s.state(item.id).active() + item.n_tokens);
    for (size_t i = 0; i < contents.size(); ++i) {
      RC_ASSERT(slots_[Slot(item.id, i)] == contents[i]);
    }
  }

  void Publish(SeqId id) {
    const uint32_t b = options_.block_size;
    if (goals_.at(id).evictable && !s.state(id).publishes) return;
    const uint32_t end = goals_.at(id).evictable ? s.state(id).prompt_tokens : UINT32_MAX;
    for (uint32_t n = 0; (n + 1) * b <= std::min(end, s.state(id).computed); ++n) {
      const BlockId block = s.state(id).table[n];
      const auto at = cached_.try_emplace(Context(id, (n + 1) * b), block).first;
      if (knows_cache_) RC_ASSERT(at->second == block);
    }
  }

  void Generate(SeqId id) {
    if (s.state(id).computed == goals_.at(id).tokens.size()) Say(id);
  }
  void Say(SeqId id) {
    Goal& goal = goals_.at(id);
    if (goal.tokens.size() == goal.tokens_wanted) {
      RC_ASSERT(s.Remove(id));
      goals_.erase(id);
      return;
    }
    goal.tokens.push_back(static_cast<TokenId>((Context(id, goal.tokens.size()) + goal.twist) % 2));
    const uint32_t b = options_.block_size;
    std::optional<Sha256Digest> filled;
    if (prefix_cache_ && !goal.evictable && goal.tokens.size() % b == 0) {
      filled = digester_.Next(s.state(id).chain, std::span(goal.tokens).last(b), goal.salt);
    }
    s.Append(id, filled);
    RC_ASSERT(s.state(id).tokens == goal.tokens.size());
  }

  void CheckBlocks() const {
    std::map<BlockId, uint32_t> refs;
    for (const auto& [id, _] : goals_) {
      const SeqState& seq = s.state(id);
      std::set<BlockId> mine;
      for (const BlockId block : seq.table) {
        ++refs[block];
        RC_ASSERT(mine.insert(block).second);
      }
      RC_ASSERT(seq.running != seq.table.empty());
    }
    for (uint32_t id = 0; id < options_.kv_blocks; ++id) {
      const auto at = refs.find(BlockId(id));
      RC_ASSERT(*s.cache().RefCount(BlockId(id)) == (at == refs.end() ? 0 : at->second));
    }
    RC_ASSERT(s.cache().blocks_free() + refs.size() == options_.kv_blocks);
  }

  SchedulerOptions options_;
  BlockDigester digester_;
  bool prefix_cache_;
  bool knows_cache_;
  bool forks_ = false;
  std::vector<uint64_t> slots_;         // context hash each slot's K/V was computed from
  std::map<uint64_t, BlockId> cached_;  // context hash -> block that holds its last tokens
  std::map<SeqId, Goal> goals_;
  uint64_t next_ = 1;
};

}  // namespace hidane::sched
