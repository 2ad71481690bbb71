#pragma once
#include <cstdint>
#include <span>

#include "vtoken/policy_run.h"
#include "vtoken/sequence_kv.h"

namespace hidane::vtoken {

/// Where a SequenceKv's live tokens lie, for a policy run. A view: not kept past the run.
class SequencePlaces final : public TokenPlaces {
 public:
  explicit SequencePlaces(const SequenceKv& seq) : seq_(seq) {}

  void Read(uint32_t unit, std::span<uint32_t> slots,
            std::span<uint32_t> positions) const override {
    size_t i = 0;
    for (uint32_t slot = 0; i < slots.size(); ++slot) {
      if (!seq_.live(unit, slot)) continue;
      slots[i] = slot;
      positions[i++] = seq_.token(unit, slot);
    }
  }

 private:
  const SequenceKv& seq_;
};

}  // namespace hidane::vtoken
