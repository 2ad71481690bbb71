#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "vtoken/policy.h"
#include "vtoken/select.h"
#include "vtoken/signal_store.h"

namespace hidane::vtoken {

/// One sequence at the moment its policy runs: its table slots [0, live) are all live.
struct RunInput {
  uint32_t live = 0;
  uint32_t logical_length = 0;
  uint32_t keep = 0;   ///< from BudgetController::KeepAt
  Guards guards = {};  ///< recent: from BudgetController::RecentOf
  uint64_t seed = 0;   ///< of (request, run)
  /// [units]: logical position of each table slot, [live]; an empty span means slot = position.
  std::span<const std::span<const uint32_t>> positions = {};
  const SignalStore* signals = nullptr;  ///< REQUIRED if the policy declares attention signals
  const KeySource* keys = nullptr;       ///< REQUIRED if it declares key signals
};

/// Who goes: the same number in every unit, by ascending position. Buffers belong to the caller
/// and are reused from run to run.
struct Victims {
  uint32_t units = 0, per_unit = 0;
  std::vector<uint32_t> slots = {};      ///< [units][per_unit], table slots
  std::vector<uint32_t> positions = {};  ///< [units][per_unit], logical positions
  /// Share of the attention mass (kColumnSum, else kWindowSum, else kLastRow) that they held, mean
  /// over units; 0 if the policy declares none of these.
  double lost_mass = 0;

  std::span<const uint32_t> SlotsOf(uint32_t unit) const {
    return std::span(slots).subspan(size_t{unit} * per_unit, per_unit);
  }
  std::span<const uint32_t> PositionsOf(uint32_t unit) const {
    return std::span(positions).subspan(size_t{unit} * per_unit, per_unit);
  }
};

/// Runs a policy: gathers its signals to logical order, reduces them over the query heads of each
/// unit, lets it score, selects. One thread; one runner serves all sequences of a policy. Reads
/// only; no allocation once its buffers have grown. O(units * (live * heads of a unit + length)).
class PolicyRunner {
 public:
  /// `policy` outlives the runner and has passed CheckTraits.
  PolicyRunner(Policy& policy, const HeadShape& shape);

  /// kInvalidArgument when more tokens are guarded than may stay; `out` is then undefined.
  Status Run(const RunInput& input, Victims& out);

 private:
  void Order(std::span<const uint32_t> slot_positions, const RunInput& input);
  std::span<const float> Reduced(Signal signal, uint32_t unit, const RunInput& input,
                                 std::vector<float>& out) const;
  void GatherKeys(uint32_t unit, const RunInput& input);
  TokenView View(uint32_t unit, const RunInput& input);
  double LostMass(const TokenView& view) const;

  Policy& policy_;
  PolicyTraits traits_;
  HeadShape shape_;
  std::vector<uint32_t> slot_of_;                                      // [live], by logical order
  std::vector<uint32_t> positions_;                                    // [live], ascending
  std::vector<uint32_t> by_position_;                                  // scratch of Order
  std::vector<float> column_sum_, low_count_, last_row_, window_sum_;  // [live]
  std::vector<float> raw_keys_, key_rows_, key_norm_;
  std::vector<float> score_;
  std::vector<uint64_t> select_keys_;
  std::vector<uint32_t> victims_;
};

}  // namespace hidane::vtoken
