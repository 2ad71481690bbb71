#include "vtoken/epoch.h"

#include <utility>

#include "base/assert.h"

namespace hidane::vtoken {

EpochEntry& Epoch::Next() {
  if (used_ == entries_.size()) entries_.emplace_back(entries_.get_allocator().memory());
  return entries_[used_];
}

Status Epoch::Stage(SequenceKv& seq, std::span<const uint32_t> victims, const Options& options,
                    bool plan) {
  if (sealed_) return Fail(Code::kInvalidArgument, "the epoch is sealed");
  EpochEntry& entry = Next();
  MakeRoom(scratch_, seq.shape().block_size);
  HIDANE_CHECK_OK(entry.Stage(seq, victims));
  if (plan) HIDANE_CHECK_OK(entry.Settle(planner_, pool_, options));
  entry.Join();
  ++used_;
  return {};
}

Status Epoch::Evict(SequenceKv& seq, std::span<const uint32_t> victims, const Options& options) {
  return Stage(seq, victims, options, seq.shape().mode == Mode::kExact);
}

Status Epoch::Repair(SequenceKv& seq, const Options& options) {
  return Stage(seq, {}, options, true);
}

Status Epoch::Seal() {
  HIDANE_ASSERT(!sealed_);
  MakeRoom(groups_, used_);
  MakeRoom(changes_, used_);
  for (size_t i = 0; i < used_; ++i) {
    EpochEntry& entry = entries_[i];
    if (entry.seq == nullptr) continue;
    if (auto withdrawn = entry.Withdraw(pool_); !withdrawn) {
      HIDANE_CHECK_OK(Abort());
      return withdrawn;
    }
    changes_.push_back({entry.seq, entry.planned ? &entry.plan : nullptr, entry.victims,
                        entry.planned ? entry.table : entry.seq->table()});
    if (!entry.moves.empty()) groups_.push_back({entry.seq->shape().scope, entry.moves});
  }
  sealed_ = true;
  return {};
}

void Epoch::Remove(SequenceKv& seq) {
  for (EpochChange& change : changes_) {
    if (change.seq == &seq) change.seq = nullptr;
  }
  for (size_t i = 0; i < used_; ++i) {
    if (entries_[i].seq == &seq) return entries_[i].Orphan();
  }
  HIDANE_ASSERT(false && "the sequence is not in this epoch");
}

EpochStats Epoch::planned() const {
  EpochStats stats;
  for (size_t i = 0; i < used_; ++i) {
    const EpochEntry& entry = entries_[i];
    if (entry.seq == nullptr) continue;
    ++stats.sequences;
    stats.victims += static_cast<uint32_t>(entry.victims.size());
    if (!entry.planned) continue;
    stats.moves += entry.moves.size();
    stats.moves_bound += entry.plan.moves_bound;
    stats.blocks_freed += entry.blocks_left();
    stats.blocks_fresh += entry.blocks_taken();
  }
  return stats;
}

Status Epoch::Commit() {
  HIDANE_ASSERT(sealed_);
  stats_ = planned();
  return End(true);
}

Status Epoch::Abort() {
  return End(false);
}

Status Epoch::End(bool commit) {
  Status first;
  for (size_t i = 0; i < used_; ++i) {
    EpochEntry& entry = entries_[i];
    auto ended = commit ? entry.Commit(pool_, scratch_) : entry.Abort(pool_, sealed_);
    if (!ended && first) first = std::move(ended);
  }
  used_ = 0;
  sealed_ = false;
  groups_.clear();
  changes_.clear();
  return first;
}

}  // namespace hidane::vtoken
