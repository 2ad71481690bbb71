#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "vtoken/signals.h"
#include "vtoken/unit.h"

namespace hidane::vtoken {

constexpr uint32_t UnitCount(Scope scope, const HeadShape& shape) {
  return UnitCount(scope, shape.layers, shape.kv_heads);
}

/// How the arrays of a unit's query heads become one: part of a policy's definition, since results
/// with different reductions can't be compared.
enum class Reduce : uint8_t { kMean, kMax };

/// When a policy runs: defaults of a `BudgetConfig`, which a request may override. Only the token
/// stream triggers: prompt length and tokens decoded, never the load or the size of a chunk.
struct Trigger {
  bool after_prefill = true;  ///< once, when the prompt is complete
  uint32_t over = 0;          ///< then, when `over` tokens more than the target live; 0 = never
  uint32_t every = 0;         ///< and at every n-th decoded token; 0 = never
};

/// What a policy needs and how it is to be used; the library does the rest.
struct PolicyTraits {
  SignalSet signals = {};
  Scope scope = Scope::kKvHead;
  Reduce reduce = Reduce::kMean;
  Trigger trigger = {};
  Origin origin = Origin::kMark;
  uint32_t window_rows = 0;  ///< kWindowSum: how many rows; Origin::kWindow: how many tokens
  float low_factor = 1;      ///< kLowCount: see StepSignals
  uint32_t sinks = 4;        ///< first positions that always stay
  uint32_t recent = 16;      ///< newest positions that always stay, at least
  float recent_share = 0;    ///< of the tokens that stay, the share that the newest get, [0, 1)
};

/// The live tokens of one unit at the moment a policy runs: n of them in logical order. Arrays that
/// the policy didn't declare are empty. Valid during Score only.
struct TokenView {
  uint32_t unit = 0;
  uint32_t logical_length = 0;               ///< tokens of the stream so far, dead ones included
  uint64_t seed = 0;                         ///< chance: of (request, run); the same in every unit
  std::span<const uint32_t> positions = {};  ///< [n], ascending; the last is logical_length - 1
  std::span<const float> column_sum = {};    ///< [n], reduced over the unit's query heads, as below
  std::span<const float> low_count = {};     ///< [n]
  std::span<const float> last_row = {};      ///< [n]
  std::span<const float> window_sum = {};    ///< [n]
  std::span<const float> key_norm = {};      ///< [n]; scope kKvHead only
  std::span<const float> key_rows = {};      ///< [n][head_dim]; scope kKvHead only
  uint32_t head_dim = 0;

  size_t size() const { return positions.size(); }
  std::span<const float> key(size_t i) const { return key_rows.subspan(i * head_dim, head_dim); }
};

/// Says which tokens are worth keeping. It sees tokens, never blocks; top-k, ties, guards, the
/// reduction, equal counts, epochs and moves are the library's. docs/write_a_policy.md builds one.
///
/// One thread. Equal views get equal scores: a member may be scratch, never memory. Not called
/// again for a unit before its victims are gone, or the run was given up.
class Policy {
 public:
  virtual ~Policy() = default;
  /// As in `--kv-policy NAME`; [a-z0-9_-].
  virtual std::string_view name() const = 0;
  /// The same at every call.
  virtual PolicyTraits traits() const = 0;
  /// Writes a score per token; higher stays. NaN counts as the lowest. REQUIRES: score.size() ==
  /// view.size(). Guarded tokens are scored too; what they get doesn't matter.
  virtual void Score(const TokenView& view, std::span<float> score) = 0;
};

/// kInvalidArgument when traits contradict each other (keys without scope kKvHead, a window signal
/// without rows, a share out of range); names the policy and the field.
Status CheckTraits(const Policy& policy);

/// The shipped policies by name. kInvalidArgument names an unknown one and lists those there are.
Result<std::unique_ptr<Policy>> MakePolicy(std::string_view name);
/// Their names, in the order of the documentation.
std::span<const std::string_view> PolicyNames();

}  // namespace hidane::vtoken
