#include "vtoken/epoch_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace hidane::vtoken {

Status EpochEntry::Stage(SequenceKv& sequence, std::span<const uint32_t> slots) {
  HIDANE_CHECK_OK(sequence.Usable());
  const uint32_t units = sequence.shape_.units, size = sequence.shape_.block_size;
  const size_t each = slots.size() / units;
  if (each * units != slots.size()) {
    return Fail(Code::kInvalidArgument,
                fmt::format("{} victims are not as many of each of {} units", slots.size(), units));
  }
  live.resize(units, LiveSet(size, memory()));
  for (uint32_t u = 0; u < units; ++u) {
    if (!sequence.live_.empty()) {
      live[u] = sequence.live_[u];
    } else {
      if (live[u].block_size() != size) live[u] = LiveSet(size, memory());
      live[u].AssignDense(sequence.spanned());
      if (!sequence.waiting_.empty()) live[u].Kill(sequence.waiting_[u]);
    }
    for (const uint32_t slot : slots.subspan(u * each, each)) {
      if (slot < sequence.spanned() && live[u].Kill(slot)) continue;
      return Fail(Code::kInvalidArgument,
                  fmt::format("victim in slot {} of unit {}, which holds no live token", slot, u));
    }
  }
  seq = &sequence;
  victims.assign(slots.begin(), slots.end());
  planned = loses_victims = false;
  moves.clear();
  taken_.clear();
  left_.clear();
  orphaned_.clear();
  first_changed = sequence.intact_;
  for (const uint32_t slot : victims) first_changed = std::min(first_changed, slot / size);
  return {};
}

Status EpochEntry::Settle(RelocationPlanner& planner, BlockPoolAdapter& pool,
                          const RepairOptions& options) {
  HIDANE_CHECK_OK(FindUses(pool));
  const bool force_out = frozen_ && options.placement == Placement::kFewestMoves;
  PlanInput input{.units = live, .incoming = options.incoming};
  if (force_out) input.uses = uses_;
  planner.Plan(input, plan);
  partial_ = plan.moves_bound > options.moves_max && seq->shape_.mode != Mode::kExact &&
             options.incoming == 0 && seq->waiting_.empty();
  if (partial_) planner.PlanPartial({.units = live, .uses = uses_}, options.moves_max, plan);
  planned = true;
  MakeRoom();
  auto homes = FindHomes(pool);
  if (!homes) {
    HIDANE_CHECK_OK(GiveBack(pool, taken_));
    return homes;
  }
  Place();
  first_changed = FindFirstChanged();
  return {};
}

// Who else needs the blocks.
Status EpochEntry::FindUses(BlockPoolAdapter& pool) {
  uses_.assign(live[0].blocks(), BlockUse::kOwn);
  frozen_ = false;
  for (uint32_t b = 0; b < uses_.size(); ++b) {
    HIDANE_TRY(const uint32_t refs, pool.RefCount(seq->table_[b]));
    HIDANE_TRY(const bool pinned, pool.Pinned(seq->table_[b]));
    if (refs > 1) {
      uses_[b] = BlockUse::kShared;
    } else if (pinned) {
      uses_[b] = BlockUse::kPinned;
    }
    frozen_ = frozen_ || uses_[b] != BlockUse::kOwn;
  }
  return {};
}

// Memory comes first, that of Commit too: once a block is taken only the host can fail.
void EpochEntry::MakeRoom() {
  const uint32_t units = seq->shape_.units, blocks = plan.blocks + plan.fresh;
  home_.assign(seq->table_.begin(), seq->table_.begin() + plan.blocks);
  home_.resize(blocks);
  vtoken::MakeRoom(taken_, plan.kept.size());
  vtoken::MakeRoom(left_, plan.blocks);
  vtoken::MakeRoom(table, seq->table_.size() + plan.fresh);
  vtoken::MakeRoom(moves, plan.moves.size() + (frozen_ ? MarkWritten() : 0));
  vtoken::MakeRoom(seq->waiting_, plan.incoming.size());
  if (!KeepsSlots()) {
    Vector<TokenTable>& tokens = seq->tokens_.empty() ? tokens_ : seq->tokens_;
    tokens.resize(units, TokenTable(memory()));
    for (TokenTable& unit : tokens) unit.MakeRoom(size_t{blocks} * seq->shape_.block_size);
  }
  if (partial_) KeepHoles();
}

Status EpochEntry::FindHomes(BlockPoolAdapter& pool) {
  for (uint32_t b = plan.blocks; b < home_.size(); ++b) HIDANE_CHECK_OK(Take(pool, home_[b]));
  if (frozen_) HIDANE_CHECK_OK(ReplaceFrozen(pool));
  for (const uint32_t b : plan.freed) left_.push_back(seq->table_[b]);
  // The leaf goes first, as from any table.
  std::reverse(left_.begin(), left_.end());
  table.clear();
  for (const uint32_t b : plan.kept) table.push_back(home_[b]);
  table.insert(table.end(), seq->table_.begin() + plan.blocks, seq->table_.end());
  return {};
}

// Which blocks that others read would be written, by moves, by the incoming token or by those
// after it. Slots behind the last that was ever live are nobody's but in a shared block. Returns
// how many tokens live in them.
size_t EpochEntry::MarkWritten() {
  const uint32_t size = seq->shape_.block_size, spanned = seq->spanned();
  written_.assign(plan.blocks, 0);
  const auto write = [&](uint32_t slot) {
    const uint32_t b = slot / size;
    if (b >= plan.blocks) return;
    if (uses_[b] == BlockUse::kShared || slot < spanned || seq->must_own_) written_[b] = 1;
  };
  for (const SlotMove& move : plan.moves) write(move.to);
  for (const uint32_t slot : plan.incoming) write(plan.kept[slot / size] * size + slot % size);
  if (plan.slots % size != 0) write(plan.kept.back() * size + plan.slots % size);
  size_t tokens = 0;
  for (uint32_t b = 0; b < plan.blocks; ++b) {
    if (written_[b] == 0 || uses_[b] == BlockUse::kOwn) continue;
    for (const LiveSet& unit : live) tokens += unit.occupancies()[b];
  }
  return tokens;
}

Status EpochEntry::ReplaceFrozen(BlockPoolAdapter& pool) {
  const uint32_t size = seq->shape_.block_size;
  for (uint32_t i = 0; i < plan.kept.size(); ++i) {
    const uint32_t b = plan.kept[i];
    if (b >= plan.blocks || uses_[b] == BlockUse::kOwn || written_[b] == 0) continue;
    HIDANE_CHECK_OK(Take(pool, home_[b]));
    left_.push_back(seq->table_[b]);
    CopyOut(b, std::min(size, plan.slots - i * size), home_[b]);
  }
  return {};
}

Status EpochEntry::Take(BlockPoolAdapter& pool, BlockId& home) {
  HIDANE_TRY(home, pool.Allocate());
  taken_.push_back(home);
  return {};
}

// The survivors of table block `index` below `width` go to the same places in `to`.
void EpochEntry::CopyOut(uint32_t index, uint32_t width, BlockId to) {
  const uint32_t size = seq->shape_.block_size;
  const uint32_t from = seq->table_[index].value() * size, base = index * size;
  for (uint32_t u = 0; u < live.size(); ++u) {
    live[u].ForEachLive(base, width, [&](uint32_t slot) {
      moves.push_back({u, from + slot - base, to.value() * size + slot - base});
    });
  }
}

// The plan's moves, in physical slots.
void EpochEntry::Place() {
  const uint32_t size = seq->shape_.block_size, spanned = seq->spanned();
  const bool would_miss =
      seq->shape_.mode == Mode::kLazy || (seq->shape_.mode == Mode::kExact && !victims.empty());
  for (const SlotMove& move : plan.moves) {
    const uint32_t from = move.from / size, to = move.to / size;
    moves.push_back({move.unit, seq->table_[from].value() * size + move.from % size,
                     home_[to].value() * size + move.to % size});
    const bool in_place = move.to < spanned && home_[to] == seq->table_[to];
    loses_victims = loses_victims || (would_miss && in_place);
  }
}

uint32_t EpochEntry::FindFirstChanged() const {
  const uint32_t size = seq->shape_.block_size;
  uint32_t first = first_changed;
  uint32_t same = 0;
  while (same < plan.kept.size() && plan.kept[same] == same) ++same;
  if (same < plan.blocks) first = std::min(first, same);
  for (const SlotMove& move : plan.moves) first = std::min(first, move.to / size);
  return first;
}

Status EpochEntry::Withdraw(BlockPoolAdapter& pool) {
  if (!planned) return {};
  // After a rollback the next token changes the tail; who shared it may be gone by now.
  if (seq->must_own_ && !plan.kept.empty() && plan.kept.back() < plan.blocks) {
    const uint32_t tail = plan.kept.back();
    if (uses_[tail] != BlockUse::kShared) HIDANE_CHECK_OK(pool.Unpublish(seq->table_[tail]));
  }
  withdrawn_ = std::min(seq->withdrawn_, first_changed);
  for (uint32_t b = std::min(seq->withdrawn_, plan.blocks); b-- > first_changed;) {
    if (uses_[b] == BlockUse::kShared) {
      withdrawn_ = UINT32_MAX;  // it stays published, and may be ours alone one day
    } else {
      HIDANE_CHECK_OK(pool.Unpublish(seq->table_[b]));
    }
  }
  return {};
}

void EpochEntry::Orphan() {
  orphaned_ = std::move(seq->table_);
  seq->Renew();
  seq = nullptr;
}

Status EpochEntry::GiveBack(BlockPoolAdapter& pool, Vector<BlockId>& blocks) {
  Status first;
  for (const BlockId block : blocks) {
    auto released = pool.Release(block);
    if (!released && first) first = std::move(released);
  }
  blocks.clear();
  return first;
}

Status EpochEntry::Commit(BlockPoolAdapter& pool, Vector<uint32_t>& scratch) {
  if (seq == nullptr) return Abort(pool, true);
  seq->in_epoch_ = false;
  seq->appended_ = 0;
  if (first_changed != UINT32_MAX) seq->intact_ = first_changed;
  if (!planned) {
    std::swap(seq->live_, live);
    return {};
  }
  seq->withdrawn_ = withdrawn_;
  ApplyPlan(scratch);
  return GiveBack(pool, left_);
}

// Every token stays in its table slot.
bool EpochEntry::KeepsSlots() const {
  return plan.moves.empty() && plan.incoming.empty() && plan.slots == seq->spanned() &&
         seq->waiting_.empty() && plan.KeepsOrder();
}

void EpochEntry::ApplyPlan(Vector<uint32_t>& scratch) {
  const uint32_t slots = seq->spanned(), logical = seq->logical_;
  if (!KeepsSlots()) {
    if (seq->tokens_.empty()) std::swap(seq->tokens_, tokens_);
    for (uint32_t u = 0; u < seq->shape_.units; ++u) {
      seq->tokens_[u].Apply(plan, u, seq->shape_.block_size, slots, logical, scratch);
    }
  }
  std::swap(seq->table_, table);
  seq->live_.clear();
  if (partial_) std::swap(seq->live_, holes_);
  seq->waiting_.assign(plan.incoming.begin(), plan.incoming.end());
  seq->active_ = plan.slots - (plan.incoming.empty() ? 0 : 1);
  seq->must_own_ = false;
}

// The live sets after a plan that left dead slots among the kept ones.
void EpochEntry::KeepHoles() {
  const uint32_t size = seq->shape_.block_size;
  for (const SlotMove& move : plan.moves) live[move.unit].Revive(move.to);
  holes_.assign(live.size(), LiveSet(size, memory()));
  for (uint32_t u = 0; u < live.size(); ++u) {
    LiveSet& after = holes_[u];
    after.AssignDense(plan.slots);
    for (uint32_t i = 0; i < plan.kept.size(); ++i) {
      const uint32_t first = plan.kept[i] * size;
      live[u].ForEachDead(first, std::min(size, plan.slots - i * size),
                          [&](uint32_t slot) { after.Kill(i * size + slot - first); });
    }
  }
}

Status EpochEntry::Abort(BlockPoolAdapter& pool, bool sealed) {
  Status first;
  if (seq != nullptr) {
    seq->in_epoch_ = false;
    seq->damaged_ = seq->damaged_ || (sealed && loses_victims);
  }
  std::reverse(orphaned_.begin(), orphaned_.end());
  first = GiveBack(pool, orphaned_);
  auto taken = GiveBack(pool, taken_);
  return first ? taken : first;
}

}  // namespace hidane::vtoken
