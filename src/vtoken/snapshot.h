#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "vtoken/unit.h"

namespace hidane::vtoken {

/// A sequence's K/V as a value: which tokens live, in which order, and both lengths. It knows no
/// blocks, so that it can be brought back into a pool of another block size, elsewhere or later.
struct Snapshot {
  Scope scope = Scope::kSequence;
  uint32_t units = 1;
  uint32_t logical_length = 0;
  uint32_t live = 0;                ///< tokens of each unit
  uint32_t intact_tokens = 0;       ///< leading slots that no eviction has touched
  std::vector<uint32_t> tokens{};   ///< [units][live] in slot order; empty: 0, 1, ...
  std::vector<uint32_t> waiting{};  ///< [units] slot left open for the next token; mostly empty
  std::vector<std::byte> policy{};  ///< its owner's: scores, counters
  std::vector<std::byte> rows{};    ///< the host's K and V, or empty if they travel otherwise

  bool operator==(const Snapshot&) const = default;
};

/// kInvalidArgument when sizes contradict each other, or for a token or slot no sequence has.
Status Validate(const Snapshot& snapshot);

/// As bytes, with version and checksum, little-endian.
std::vector<std::byte> Encode(const Snapshot& snapshot);
/// kInvalidArgument for another version or a wrong checksum, and as Validate.
Result<Snapshot> Decode(std::span<const std::byte> bytes);

}  // namespace hidane::vtoken
