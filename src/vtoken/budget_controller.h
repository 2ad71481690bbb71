#pragma once
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "vtoken/policy.h"

namespace hidane::vtoken {

/// How much a sequence may keep, as the server or the request says; 0 and 1 mean "no limit".
struct BudgetConfig {
  uint32_t cap = 0;          ///< tokens that stay at most; 0 = no cap
  double keep = 1;           ///< share of the stream that stays at most, (0, 1]
  uint32_t min_tokens = 64;  ///< never fewer stay: a short sequence is left alone
  double evict_max = 1;      ///< largest share of the live tokens that one run takes, (0, 1]
  /// Fallback: a run whose victims hold more than this share of the attention mass, [0, 1], is
  /// given up, and the sequence keeps everything from then on. 1 = never.
  double lost_mass_max = 1;
  std::optional<Trigger> trigger = {};  ///< instead of the policy's
};

/// Where a sequence stands.
struct Lengths {
  uint32_t prompt = 0;   ///< tokens of the prompt
  uint32_t logical = 0;  ///< tokens of the stream computed so far
  uint32_t live = 0;     ///< of these, tokens that each unit still has
};

/// Decides when a policy runs on one sequence and how many tokens stay. A function of the token
/// stream alone: no load, no clock, no chunk size, so the same request evicts at the same tokens
/// everywhere. Never runs inside a prompt: the signals of half a prompt depend on how it was cut.
///
/// Pure but for `FallBack`; a plain value, copied when a sequence forks.
class BudgetController {
 public:
  /// `guarded` tokens (PolicyTraits' sinks and recent, and pinned spans) always stay.
  /// kInvalidArgument names a field out of range, or a cap below what is guarded.
  static Result<BudgetController> Make(const BudgetConfig& config, const PolicyTraits& traits,
                                       uint32_t guarded_pins = 0);

  /// How many tokens of each unit stay now, fewer than live; nullopt: no run here. To be asked once
  /// after each step that ended at `at.logical`.
  std::optional<uint32_t> KeepAt(const Lengths& at) const;
  /// The logical length > at.logical at which KeepAt says yes next, if every token until then
  /// lives; UINT32_MAX: never. What window signals count back from. O(log n).
  uint32_t NextRun(const Lengths& at) const;
  /// Newest tokens that stay, when `keep` do: the policy's `recent` or its `recent_share`.
  uint32_t RecentOf(uint32_t keep) const;

  /// After a run that would have cost `lost_mass` of the attention: false if it is to be given up.
  /// Once false, the controller never runs again.
  bool Accept(double lost_mass);
  /// Full KV from here on, e.g. for a request that wants its prompt's log-probabilities.
  void FallBack() { full_ = true; }
  bool full() const { return full_; }
  const Trigger& trigger() const { return trigger_; }

 private:
  BudgetController() = default;
  uint32_t Target(uint32_t logical) const;
  bool DecodeRun(const Lengths& at) const;
  uint32_t FirstOver(const Lengths& from, uint32_t surplus) const;

  BudgetConfig config_;
  Trigger trigger_;
  uint32_t floor_ = 0, recent_ = 0;
  float recent_share_ = 0;
  bool full_ = false;
};

}  // namespace hidane::vtoken
