#pragma once
#include <cstdint>

#include "vtoken/memory.h"
#include "vtoken/relocation_planner.h"

namespace hidane::vtoken {

/// Which logical token (position in the stream) lies in which table slot, for one unit.
///
/// Until something moves, and behind what moved, slot and token differ by a constant: that part
/// costs no memory, and appending to it costs nothing. What moved costs 4 bytes a slot.
class TokenTable {
 public:
  explicit TokenTable(Memory memory = nullptr) : moved_(memory) {}

  /// REQUIRES: a token lies in `slot`.
  uint32_t token(uint32_t slot) const {
    return slot < moved_.size() ? moved_[slot] : slot + shift_;
  }
  /// True while slot == token everywhere.
  bool identity() const { return moved_.empty() && shift_ == 0; }

  /// Room for `slots` slots, so that Apply can't fail.
  void MakeRoom(size_t slots) { vtoken::MakeRoom(moved_, slots); }

  /// Follows `plan` for `unit`. `slots`: those in use before it; `next`: the token that is
  /// appended next. `scratch` is only memory that is kept.
  void Apply(const RelocationPlan& plan, uint32_t unit, uint32_t block_size, uint32_t slots,
             uint32_t next, Vector<uint32_t>& scratch);

  /// The tokens of the first `tokens.size()` slots, from elsewhere; `next` follows them.
  void Assign(Vector<uint32_t> tokens, uint32_t next);

 private:
  Vector<uint32_t> moved_;  // by slot
  uint32_t shift_ = 0;      // of the slots behind, modulo 2^32
};

}  // namespace hidane::vtoken
