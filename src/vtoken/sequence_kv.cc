#include "vtoken/sequence_kv.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace hidane::vtoken {

SequenceKv::SequenceKv(const SequenceShape& shape, Memory memory)
    : shape_(shape), table_(memory), tokens_(memory), live_(memory), waiting_(memory) {
  HIDANE_ASSERT(shape.units >= 1 && shape.units <= kUnitsMax && shape.block_size >= 1 &&
                shape.block_size <= UINT16_MAX);
}

bool SequenceKv::live(uint32_t unit, uint32_t slot) const {
  if (slot >= spanned()) return false;
  if (!live_.empty()) return live_[unit].live(slot);
  return waiting_.empty() || waiting_[unit] != slot;
}

uint64_t SequenceKv::dead_slots(uint32_t unit, uint32_t word) const {
  if (live_.empty() || word * 64 >= active_) return 0;
  const uint32_t n = active_ - word * 64;
  const uint64_t active = n < 64 ? (uint64_t{1} << n) - 1 : ~uint64_t{0};
  return ~live_[unit].words()[word] & active;
}

Status SequenceKv::Usable() const {
  if (in_epoch_) return Fail(Code::kInvalidArgument, "the sequence is in an open epoch");
  if (damaged_) return Fail(Code::kInvalidArgument, "the sequence lost K/V in an aborted epoch");
  return {};
}

Status SequenceKv::Adopt(std::span<const BlockId> blocks, uint32_t tokens) {
  HIDANE_CHECK_OK(Usable());
  if (!table_.empty() || logical_ > 0 || tokens > kTokensMax || blocks.size() < BlocksOf(tokens)) {
    return Fail(Code::kInvalidArgument,
                fmt::format("{} tokens in {} blocks, by a sequence that holds {}", tokens,
                            blocks.size(), table_.size()));
  }
  table_.assign(blocks.begin(), blocks.end());
  logical_ = active_ = tokens;
  return {};
}

Status SequenceKv::SetTable(std::span<const BlockId> blocks) {
  HIDANE_CHECK_OK(Usable());
  if (BlocksOf(spanned()) > blocks.size()) {
    return Fail(Code::kInvalidArgument,
                fmt::format("{} slots in use don't fit {} blocks", spanned(), blocks.size()));
  }
  table_.assign(blocks.begin(), blocks.end());
  return {};
}

Status SequenceKv::Reserve(BlockPoolAdapter& pool, uint32_t n) {
  HIDANE_CHECK_OK(Usable());
  if (must_own_) return Fail(Code::kInvalidArgument, "the next token's block is shared");
  if (!waiting_.empty() && n != 1) {
    return Fail(Code::kInvalidArgument, fmt::format("{} tokens, and a slot waits for one", n));
  }
  if (n > kTokensMax - logical_) {
    return Fail(Code::kInvalidArgument, fmt::format("{} tokens after {}", n, logical_));
  }
  const size_t before = table_.size();
  MakeRoom(table_, BlocksOf(active_ + n));
  while (table_.size() < BlocksOf(active_ + n)) {
    auto block = pool.Allocate();
    if (block) {
      table_.push_back(*block);
      continue;
    }
    for (; table_.size() > before; table_.pop_back()) HIDANE_CHECK_OK(pool.Release(table_.back()));
    return Fail(std::move(block).error());
  }
  return {};
}

Status SequenceKv::Trim(BlockPoolAdapter& pool) {
  HIDANE_CHECK_OK(Usable());
  for (; table_.size() > BlocksOf(spanned()); table_.pop_back()) {
    HIDANE_CHECK_OK(pool.Release(table_.back()));
  }
  return {};
}

Status SequenceKv::Append(uint32_t n) {
  HIDANE_CHECK_OK(Usable());
  if (must_own_ || (!waiting_.empty() && n != 1) || n > kTokensMax - logical_ ||
      BlocksOf(active_ + n) > table_.size()) {
    return Fail(Code::kInvalidArgument, fmt::format("{} tokens that were not reserved", n));
  }
  for (LiveSet& live : live_) live.MakeRoom(spanned() + n);
  for (uint32_t u = 0; u < live_.size(); ++u) {
    if (waiting_.empty()) {
      live_[u].Append(n);
    } else {
      live_[u].Revive(waiting_[u]);
    }
  }
  // A token that took a dead slot can't be rolled back: there is no hole to go back to.
  appended_ = waiting_.empty() ? appended_ + n : 0;
  waiting_.clear();
  active_ += n;
  logical_ += n;
  return {};
}

Status SequenceKv::Rollback(BlockPoolAdapter& pool, uint32_t n) {
  HIDANE_CHECK_OK(Usable());
  if (n > appended_) {
    return Fail(Code::kInvalidArgument,
                fmt::format("rollback of {} tokens, at most {} go", n, appended_));
  }
  if (n == 0) return {};
  // What was published of them is written anew, unless others read it: then it is copied first.
  const uint32_t tail = (active_ - n) / shape_.block_size;
  bool read = false;
  for (uint32_t b = BlocksOf(active_); b-- > tail;) {
    HIDANE_TRY(const uint32_t refs, pool.RefCount(table_[b]));
    HIDANE_TRY(const bool pinned, pool.Pinned(table_[b]));
    if (refs == 1) HIDANE_CHECK_OK(pool.Unpublish(table_[b]));
    read = b == tail && (refs > 1 || pinned);
  }
  must_own_ = must_own_ || (read && (active_ - n) % shape_.block_size != 0);
  for (LiveSet& live : live_) live.RemoveLast(n);
  active_ -= n;
  logical_ -= n;
  appended_ -= n;
  return Trim(pool);
}

Result<SequenceKv> SequenceKv::Fork(BlockPoolAdapter& pool) {
  HIDANE_CHECK_OK(Usable());
  SequenceKv other(shape_, memory());
  other.tokens_ = tokens_;
  other.live_ = live_;
  other.waiting_ = waiting_;
  MakeRoom(other.table_, BlocksOf(spanned()));
  for (const BlockId block : std::span(table_).first(BlocksOf(spanned()))) {
    auto held = pool.Retain(block);
    if (!held) {
      HIDANE_CHECK_OK(other.Release(pool));
      return Fail(std::move(held).error());
    }
    other.table_.push_back(block);
  }
  other.logical_ = logical_;
  other.active_ = active_;
  other.intact_ = intact_;
  other.withdrawn_ = withdrawn_;
  appended_ = 0;
  must_own_ = other.must_own_ = !waiting_.empty() || active_ % shape_.block_size != 0;
  return other;
}

Result<SequenceKv> SequenceKv::ForkAt(std::span<const BlockId> blocks) {
  HIDANE_CHECK_OK(Usable());
  SequenceKv other(*this);
  HIDANE_CHECK_OK(other.SetTable(blocks));
  appended_ = other.appended_ = 0;
  return other;
}

std::vector<uint32_t> SequenceKv::OpenBlocks() const {
  std::vector<uint32_t> blocks;
  for (const uint32_t slot : waiting_) blocks.push_back(slot / shape_.block_size);
  if (spanned() % shape_.block_size != 0) blocks.push_back(spanned() / shape_.block_size);
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  return blocks;
}

Status SequenceKv::Release(BlockPoolAdapter& pool) {
  if (in_epoch_) return Usable();
  Status first;
  for (; !table_.empty(); table_.pop_back()) {
    auto released = pool.Release(table_.back());
    if (!released && first) first = std::move(released);
  }
  Renew();
  return first;
}

Snapshot SequenceKv::Export() const {
  Snapshot out{.scope = shape_.scope, .units = shape_.units, .logical_length = logical_};
  out.live = live_tokens();
  const uint64_t intact = uint64_t{intact_} * shape_.block_size;
  out.intact_tokens = static_cast<uint32_t>(std::min<uint64_t>(intact, active_));
  if (!evicted()) return out;
  out.tokens.reserve(size_t{out.live} * shape_.units);
  for (uint32_t unit = 0; unit < shape_.units; ++unit) {
    const size_t first = out.tokens.size();
    for (uint32_t slot = 0; slot < spanned(); ++slot) {
      if (live(unit, slot)) {
        out.tokens.push_back(token(unit, slot));
      } else if (!waiting_.empty() && waiting_[unit] == slot) {
        out.waiting.push_back(static_cast<uint32_t>(out.tokens.size() - first));
      }
    }
  }
  return out;
}

Result<SequenceKv> SequenceKv::Import(const Snapshot& snapshot, const SequenceShape& shape,
                                      BlockPoolAdapter& pool, Memory memory) {
  HIDANE_CHECK_OK(Validate(snapshot));
  if (snapshot.scope != shape.scope || snapshot.units != shape.units) {
    return Fail(Code::kInvalidArgument,
                fmt::format("a snapshot of {} units for {}", snapshot.units, shape.units));
  }
  SequenceKv seq(shape, memory);
  const bool identity = snapshot.tokens.empty() && snapshot.live == snapshot.logical_length;
  if (!identity || !snapshot.waiting.empty()) seq.PlaceTokens(snapshot);
  Vector<uint32_t> waiting(snapshot.waiting.begin(), snapshot.waiting.end(), memory);
  HIDANE_CHECK_OK(seq.Reserve(pool, snapshot.live + (waiting.empty() ? 0 : 1)));
  seq.active_ = snapshot.live;
  seq.logical_ = snapshot.logical_length;
  seq.waiting_ = std::move(waiting);
  return seq;
}

// Which token lies in which slot.
void SequenceKv::PlaceTokens(const Snapshot& snapshot) {
  intact_ = snapshot.intact_tokens / shape_.block_size;
  tokens_.resize(shape_.units, TokenTable(memory()));
  const bool waits = !snapshot.waiting.empty();
  for (uint32_t unit = 0; unit < shape_.units; ++unit) {
    auto from = snapshot.tokens.begin() + size_t{unit} * snapshot.live;
    uint32_t next = snapshot.logical_length;
    Vector<uint32_t> tokens(snapshot.live + (waits ? 1 : 0), memory());
    for (uint32_t slot = 0; slot < tokens.size(); ++slot) {
      tokens[slot] = waits && slot == snapshot.waiting[unit] ? next++ : *from++;
    }
    tokens_[unit].Assign(std::move(tokens), next);
  }
}

}  // namespace hidane::vtoken
