#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vtoken/policy.h"
#include "vtoken/relocation_planner.h"
#include "vtoken/signals.h"

namespace hidane::vtoken {

/// The attention signals of ONE sequence, as they have added up since its origin.
///
/// Kept by table slot, per layer and query head, because that is where attention finds the tokens;
/// so an epoch's moves permute the signals like the K/V bytes (`Move`), and a policy run gathers
/// them to logical order once. Invariant: whatever lies at or above the live slots is zero, so a
/// token appended there starts with nothing.
///
///   Step ─> model adds rows ─> ... ─> policy run ─> Follow the epoch's plan ─> RunDone
///
/// A plain value: copy it to fork or to snapshot a sequence. No allocation while `Reserve` stays
/// within what was reserved before. Memory: layers * q_heads * 4 bytes per slot and signal.
class SignalStore {
 public:
  /// Keeps what `traits` declares, for units of its scope. `origin` is from OriginPosition.
  SignalStore(const HeadShape& shape, const PolicyTraits& traits, uint32_t origin);

  bool wanted() const { return signals_.attention(); }  ///< else all calls are no-ops
  uint32_t origin() const { return origin_; }
  uint32_t slots() const { return slots_; }

  /// Room for `slots` table slots; grows by at least half, to copy seldom.
  void Reserve(uint32_t slots);

  /// Where the model adds a step of `n` tokens, the first at logical position `first`. `next_run`
  /// is BudgetController::NextRun: the window's rows are the last `window_rows` before it. Valid
  /// until the next Reserve. REQUIRES: slots() covers what the step's last row sees.
  StepSignals Step(uint32_t first, uint32_t n, uint32_t next_run);

  /// A plan's moves and its new order of blocks; what no live token has any more becomes zero, the
  /// slot left open for an incoming token too. `plan` has this store's units. O(heads * (moves +
  /// slots of the table)) when blocks change places, else O(heads * moves + slots cut off).
  void Follow(const RelocationPlan& plan, uint32_t block_size);

  // The same step by step, for hosts that plan otherwise. Slots are table slots < slots().
  void Move(uint32_t unit, uint32_t from, uint32_t to);  ///< the token's signals go where it went
  void Clear(uint32_t unit, uint32_t slot);  ///< a dead slot that the next token will take
  void Truncate(uint32_t live);              ///< of all units: slots from `live` on are no more
  void RunDone();                            ///< a policy has run: the next window starts at zero

  /// What has added up for one query head, [slots()] by table slot; empty if not declared.
  /// REQUIRES: an attention signal.
  std::span<const float> Row(Signal signal, uint32_t layer, uint32_t q_head) const;

 private:
  static constexpr std::array<Signal, 4> kAttention{Signal::kColumnSum, Signal::kLowCount,
                                                    Signal::kLastRow, Signal::kWindowSum};
  struct Heads {
    size_t first, count;  // of the rows (layer * q_heads + head) of an array
  };

  Heads HeadsOf(uint32_t unit) const;
  float* Array(Signal signal);
  void ReorderBlocks(std::span<const uint32_t> kept, uint32_t block_size);

  HeadShape shape_;
  SignalSet signals_;
  Scope scope_;
  uint32_t window_rows_;
  float low_factor_;
  uint32_t origin_;
  uint32_t slots_ = 0;
  std::array<std::vector<float>, kAttention.size()> arrays_;  // [layer][q_head][slots_]; or empty
  std::vector<float> scratch_;
};

}  // namespace hidane::vtoken
