#include "routing/cache_index.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "routing/flat_map.h"

namespace hidane::routing {
namespace {

// Chains agree up to a point and never after it, so the point can be searched.
size_t CommonBlocks(std::span<const uint64_t> run, std::span<const uint64_t> chain) {
  const size_t n = std::min(run.size(), chain.size());
  if (run[n - 1] == chain[n - 1]) return n;
  size_t same = 1;  // the first block is how the run was found
  size_t differs = n - 1;
  while (same < differs) {
    const size_t middle = (same + differs) / 2;
    if (run[middle] == chain[middle]) {
      same = middle + 1;
    } else {
      differs = middle;
    }
  }
  return same;
}

}  // namespace

template <class Visit>
CacheIndex::Path CacheIndex::Walk(const prompt::Identity& prompt, Visit&& visit) const {
  const std::span<const uint64_t> chain = prompt.chain;
  Path path;
  while (path.blocks < chain.size()) {
    const RunId id = FirstAt(chain[path.blocks]);
    if (id == kNone) break;
    const Run& run = runs_[id];
    path.last = id;
    path.inside = CommonBlocks(run.blocks, chain.subspan(path.blocks));
    path.blocks += path.inside;
    visit(id);
    if (path.inside < run.blocks.size()) break;
  }
  return path;
}

CacheIndex::Match CacheIndex::MatchOf(const Path& path) const {
  if (path.last == kNone) return {};
  return {static_cast<uint32_t>(path.blocks), runs_[path.last].used};
}

CacheIndex::Match CacheIndex::Find(const prompt::Identity& prompt) const {
  return MatchOf(Walk(prompt, [](RunId) {}));
}

void CacheIndex::PrefetchRun(const prompt::Identity& prompt) const {
  const RunId id = prompt.size() == 0 ? kNone : FirstAt(prompt.chain.front());
  if (id != kNone) __builtin_prefetch(&runs_[id]);
}

void CacheIndex::PrefetchInsert() const {
  for (const RunId id : {newest_, oldest_, free_.empty() ? kNone : free_.back()}) {
    if (id != kNone) __builtin_prefetch(&runs_[id]);
  }
}

CacheIndex::Match CacheIndex::Insert(const prompt::Identity& prompt, double tokens_per_byte,
                                     TimePoint now) {
  path_.clear();
  const Path path = Walk(prompt, [this](RunId run) { path_.push_back(run); });
  const Match before = MatchOf(path);
  if (path.last != kNone && path.inside < runs_[path.last].blocks.size()) {
    Split(path.last, path.inside);
    path_.back() = FirstAt(prompt.chain[path.blocks - path.inside]);
  }
  if (path.blocks < prompt.size()) {
    const RunId id = NewRun();
    Run& run = runs_[id];
    run.blocks.assign(prompt.chain.begin() + static_cast<ptrdiff_t>(path.blocks),
                      prompt.chain.end());
    run.tokens = (prompt.bytes() - prompt.BytesAt(path.blocks)) * tokens_per_byte;
    tokens_ += run.tokens;
    blocks_ += run.blocks.size();
    SetFirst(run.blocks.front(), id);
    LinkNewest(id);
    path_.push_back(id);
  }
  for (auto run = path_.rbegin(); run != path_.rend(); ++run) {  // parents end up the newest
    Unlink(*run);
    LinkNewest(*run);
    runs_[*run].used = now;
  }
  Trim();
  return before;
}

// The run keeps its tail, so nothing below it changes; the head is a new run above it.
void CacheIndex::Split(RunId id, size_t at) {
  const RunId head_id = NewRun();
  Run& tail = runs_[id];
  Run& head = runs_[head_id];
  const double share = static_cast<double>(at) / static_cast<double>(tail.blocks.size());
  const auto cut = tail.blocks.begin() + static_cast<ptrdiff_t>(at);
  head.blocks.assign(tail.blocks.begin(), cut);
  tail.blocks.erase(tail.blocks.begin(), cut);
  head.tokens = tail.tokens * share;
  tail.tokens -= head.tokens;
  head.used = tail.used;
  SetFirst(head.blocks.front(), head_id);
  SetFirst(tail.blocks.front(), id);
  LinkBefore(head_id, id);
}

CacheIndex::RunId CacheIndex::NewRun() {
  if (free_.empty()) {
    runs_.emplace_back();
    return static_cast<RunId>(runs_.size() - 1);
  }
  const RunId id = free_.back();
  free_.pop_back();
  return id;
}

CacheIndex::RunId CacheIndex::FirstAt(uint64_t block) const {
  const auto at = first_.find(block);
  return at == first_.end() ? kNone : at->second;
}

void CacheIndex::SetFirst(uint64_t block, RunId run) {
  MakeRoom(first_);
  first_.insert_or_assign(block, run);
}

void CacheIndex::Remove(RunId id) {
  Run& run = runs_[id];
  if (FirstAt(run.blocks.front()) == id) first_.erase(run.blocks.front());
  tokens_ -= run.tokens;
  blocks_ -= run.blocks.size();
  Unlink(id);
  // Short lists are kept for the next run: in steady state the index then never allocates, which
  // keeps the allocator's consolidations (100 us) out of decisions.
  constexpr size_t kKeepBlocks = 64;
  std::vector<uint64_t> kept = std::move(run.blocks);
  kept.clear();
  run = Run{};
  if (kept.capacity() <= kKeepBlocks) run.blocks = std::move(kept);
  free_.push_back(id);
}

void CacheIndex::LinkNewest(RunId id) {
  Run& run = runs_[id];
  run.newer = kNone;
  run.older = newest_;
  (newest_ == kNone ? oldest_ : runs_[newest_].newer) = id;
  newest_ = id;
}

void CacheIndex::LinkBefore(RunId id, RunId older) {
  Run& run = runs_[id];
  run.older = older;
  run.newer = runs_[older].newer;
  (run.newer == kNone ? newest_ : runs_[run.newer].older) = id;
  runs_[older].newer = id;
}

void CacheIndex::Unlink(RunId id) {
  const Run& run = runs_[id];
  (run.newer == kNone ? newest_ : runs_[run.newer].older) = run.older;
  (run.older == kNone ? oldest_ : runs_[run.older].newer) = run.newer;
}

// Trimming ends less than a block under the capacity.
std::optional<TimePoint> CacheIndex::EvictsNext() const {
  constexpr double kFull = 0.98;
  const bool full = tokens_ >= kFull * static_cast<double>(capacity_tokens_);
  return full && oldest_ != kNone ? std::optional(runs_[oldest_].used) : std::nullopt;
}

void CacheIndex::Trim() {
  while (oldest_ != kNone && tokens_ > static_cast<double>(capacity_tokens_)) {
    Run& run = runs_[oldest_];
    const double per_block = run.tokens / static_cast<double>(run.blocks.size());
    const double excess = tokens_ - static_cast<double>(capacity_tokens_);
    const auto drop = static_cast<size_t>(std::ceil(excess / per_block));
    if (drop >= run.blocks.size()) {
      Remove(oldest_);
      continue;
    }
    Shorten(oldest_, run.blocks.size() - drop);
  }
}

void CacheIndex::Shorten(RunId id, size_t blocks) {
  Run& run = runs_[id];
  const size_t drop = run.blocks.size() - blocks;
  const double tokens =
      run.tokens / static_cast<double>(run.blocks.size()) * static_cast<double>(drop);
  run.blocks.resize(blocks);
  run.tokens -= tokens;
  tokens_ -= tokens;
  blocks_ -= drop;
}

void CacheIndex::ForgetRun(uint64_t block) {
  if (const RunId id = FirstAt(block); id != kNone) Remove(id);
}

void CacheIndex::Forget(const boost::unordered_flat_set<uint64_t>& gone) {
  for (RunId id = 0; id < runs_.size(); ++id) {
    const std::vector<uint64_t>& blocks = runs_[id].blocks;  // a free one has none
    const auto at =
        std::ranges::find_if(blocks, [&](uint64_t block) { return gone.contains(block); });
    if (at == blocks.end()) continue;
    if (at == blocks.begin()) {
      Remove(id);
    } else {
      Shorten(id, static_cast<size_t>(at - blocks.begin()));
    }
  }
}

void CacheIndex::ForgetUnusedSince(TimePoint time) {
  while (oldest_ != kNone && runs_[oldest_].used <= time) Remove(oldest_);
}

void CacheIndex::SetCapacity(uint64_t tokens) {
  capacity_tokens_ = tokens;
  Trim();
}

void CacheIndex::Clear() {
  const uint64_t capacity = capacity_tokens_;
  *this = CacheIndex(capacity);
}

size_t CacheIndex::bytes() const {
  constexpr size_t kSlot = sizeof(std::pair<uint64_t, RunId>) + 1;
  return blocks_ * sizeof(uint64_t) + runs_.size() * sizeof(Run) + first_.bucket_count() * kSlot;
}

}  // namespace hidane::routing
