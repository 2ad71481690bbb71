#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "prompt/identity.h"

namespace hidane::routing {

/// What one worker is believed to hold in its prefix cache: an estimate, bounded by the worker's
/// own capacity and forgetting as the engine does, the least recently used leaf first.
///
/// Prompts that share a beginning share its runs; a run is the stretch between two branchings:
///
///     [tools + system: 480 blocks] -+- [user a: 3] - [assistant, user: 5]
///                                   `- [user b: 2]
///
/// Only the first block of a run is hashed into a table, so matching costs one lookup per run
/// and a binary search in the last one, and an entry costs 8 bytes a block beside its run.
/// Each run is more recent than its children, so the oldest run is always a leaf.
/// Not thread-safe.
class CacheIndex {
 public:
  explicit CacheIndex(uint64_t capacity_tokens = 0) : capacity_tokens_(capacity_tokens) {}

  struct Match {
    uint32_t blocks = 0;    ///< of the prompt, from its start
    TimePoint last_used{};  ///< of the deepest matched run, before this request
  };
  Match Find(const prompt::Identity& prompt) const;

  /// Begins the memory access of a Find behind its lookup, so that those of several workers run
  /// side by side.
  void PrefetchRun(const prompt::Identity& prompt) const;
  /// The same of an Insert.
  void PrefetchInsert() const;

  /// The worker computes `prompt`: its blocks are (or soon will be) cached and most recent.
  /// Returns what was there before.
  Match Insert(const prompt::Identity& prompt, double tokens_per_byte, TimePoint now);

  /// A prefill that Insert believed in did not happen: drops the run that began at `block`.
  void ForgetRun(uint64_t block);

  /// The engine holds none of `gone` any more: each run ends before its first such block. Runs
  /// behind it stay, out of reach until the blocks before them are back, as engines that find
  /// blocks by hash keep them. Cost: looks at every block, O(1) a run that goes, no allocation.
  void Forget(const boost::unordered_flat_set<uint64_t>& gone);

  /// The engine evicted something last used at `time`; so it did all that is older.
  void ForgetUnusedSince(TimePoint time);

  void SetCapacity(uint64_t tokens);
  void Clear();

  /// `tokens` more would evict nothing.
  bool HasRoom(uint64_t tokens) const { return this->tokens() + tokens <= capacity_tokens_; }
  /// When what would be forgotten next was last used; nullopt while there is room.
  std::optional<TimePoint> EvictsNext() const;
  uint64_t tokens() const { return static_cast<uint64_t>(tokens_); }
  size_t blocks() const { return blocks_; }
  size_t bytes() const;  ///< memory held, about

 private:
  using RunId = uint32_t;
  static constexpr RunId kNone = UINT32_MAX;
  struct Run {
    std::vector<uint64_t> blocks;
    double tokens = 0;
    TimePoint used{};
    RunId newer = kNone;
    RunId older = kNone;
  };
  struct Path {
    size_t blocks = 0;   // matched
    RunId last = kNone;  // run in which the match ends
    size_t inside = 0;   // blocks of `last` that match
  };

  template <class Visit>
  Path Walk(const prompt::Identity& prompt, Visit&& visit) const;
  Match MatchOf(const Path& path) const;
  RunId NewRun();
  RunId FirstAt(uint64_t block) const;
  void SetFirst(uint64_t block, RunId run);
  void Split(RunId run, size_t at);
  void Remove(RunId run);
  void Shorten(RunId run, size_t blocks);
  void LinkNewest(RunId run);
  void LinkBefore(RunId run, RunId older);
  void Unlink(RunId run);
  void Trim();

  boost::unordered_flat_map<uint64_t, RunId> first_;  // first block of each run
  std::vector<Run> runs_;
  std::vector<RunId> free_;
  std::vector<RunId> path_;  // scratch of Insert
  RunId newest_ = kNone;
  RunId oldest_ = kNone;
  double tokens_ = 0;
  size_t blocks_ = 0;
  uint64_t capacity_tokens_;
};

}  // namespace hidane::routing
