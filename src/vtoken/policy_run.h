#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "vtoken/policy.h"
#include "vtoken/select.h"
#include "vtoken/signal_store.h"

namespace hidane::vtoken {

/// Where the live tokens of one sequence lie; asked once per unit when a policy runs.
struct TokenPlaces {
  /// Writes the table slot and the logical position of each live token of `unit`, in any order.
  /// Both spans are [live].
  virtual void Read(uint32_t unit, std::span<uint32_t> slots,
                    std::span<uint32_t> positions) const = 0;

 protected:
  ~TokenPlaces() = default;
};

/// One sequence at the moment its policy runs.
struct RunInput {
  uint32_t live = 0;   ///< tokens of each unit
  uint32_t slots = 0;  ///< table slots in use; == live where all of them are live
  uint32_t logical_length = 0;
  uint32_t keep = 0;                     ///< from BudgetController::KeepAt
  Guards guards = {};                    ///< recent: from BudgetController::RecentOf
  uint64_t seed = 0;                     ///< of (request, run)
  const TokenPlaces* places = nullptr;   ///< null: nothing has moved or died, slot = position
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
  void Order(uint32_t unit, const RunInput& input);
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
  std::vector<uint32_t> read_slots_, read_positions_, by_position_;    // scratch of Order
  std::vector<float> column_sum_, low_count_, last_row_, window_sum_;  // [live]
  std::vector<float> raw_keys_, key_rows_, key_norm_;
  std::vector<float> score_;
  std::vector<uint64_t> select_keys_;
  std::vector<uint32_t> victims_;
};

}  // namespace hidane::vtoken
