#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "vtoken/sequence_kv.h"

namespace hidane::vtoken {

/// Who was evicted when, by logical token: it can be replayed on another layout, block size or
/// mechanism, and by a sequence that is computed anew. 4 bytes a victim; its owner bounds it by
/// bounding the sequence.
class VictimLog {
 public:
  /// `slots`: [units][n] table slots of `seq` before the epoch (EpochChange::victims).
  void Record(const SequenceKv& seq, std::span<const uint32_t> slots);

  struct Round {
    uint32_t logical_length;           ///< of the sequence when it happened
    std::span<const uint32_t> tokens;  ///< [units][n] logical tokens
  };
  uint32_t rounds() const { return static_cast<uint32_t>(starts_.size()); }
  Round round(uint32_t index) const;  ///< REQUIRES: index < rounds()

 private:
  struct Start {
    uint32_t logical_length;
    uint64_t first;
  };
  std::vector<Start> starts_;
  std::vector<uint32_t> tokens_;
};

/// The table slots of `tokens` ([units][n], logical): a round of a log as victims of `seq`.
/// kInvalidArgument for a token that doesn't live there. O(units * slots).
Result<std::vector<uint32_t>> SlotsOf(const SequenceKv& seq, std::span<const uint32_t> tokens);

}  // namespace hidane::vtoken
