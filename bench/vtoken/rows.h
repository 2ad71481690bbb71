#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "arms.h"
#include "vtoken/live_set.h"

namespace hidane::bench {

/// Bytes of one token's K and V in SmolLM2-135M: 30 layers, 3 KV heads of 64, bf16.
inline constexpr double kTokenBytes = 30.0 * 2 * 3 * 64 * 2;

/// One mechanism on one kind of victims: means per sequence.
struct Row {
  Mechanism mechanism = Mechanism::kOurs;
  std::string policy;
  double keep = 0;
  uint32_t block_size = 0;
  double blocks = 0, blocks_min = 0, peak_blocks = 0;
  double naive_blocks = 0;         ///< what Naive-Evict holds
  double reduction_expected = -1;  ///< of blocks against Naive-Evict; < 0: no formula
  double moves_expected = -1;      ///< of the best compaction; < 0: no formula
  double moves = 0, moves_bound = 0, free_tail_bound = 0;  ///< tokens, all units together / units
  double kept_choice = 1;
  double plan_us_p50 = -1, plan_us_p99 = -1;  ///< < 0: this mechanism plans nothing
  double output_error = -1;                   ///< see QualityRow; < 0: not measured
  bool exact = true;  ///< ours: in every sequence blocks == ceil(L/B) and moves == the bound

  double reduction() const { return naive_blocks > 0 ? 1 - blocks / naive_blocks : 0; }
  /// Payload copied per block won against Naive-Evict; < 0: nothing was won.
  double bytes_per_freed_block() const {
    return naive_blocks - blocks > 0 ? moves * kTokenBytes / (naive_blocks - blocks) : -1;
  }
};

/// The live sets of one sequence at the moment its policy has run: [units].
using Sequence = std::vector<vtoken::LiveSet>;

/// All eight mechanisms on the same victims. `repeats` plans each sequence so often, for the times.
std::vector<Row> RunArms(const std::string& policy, double keep,
                         std::span<const Sequence> sequences, uint32_t repeats);

/// A live set of one unit from a map of bytes.
vtoken::LiveSet FromMap(std::span<const uint8_t> map, uint32_t block_size);

}  // namespace hidane::bench
