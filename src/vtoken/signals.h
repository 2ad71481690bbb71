#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace hidane::vtoken {

/// What a policy may ask to see of each token. The model computes nothing that nobody declares.
///
/// The first four come from attention: per layer and *query head*, an f32 array over the table
/// slots of a sequence, which the model adds to as steps go by (`StepSignals`). Flash kernels keep
/// no weights, so each of them costs a second pass over K for the rows that count.
/// The last two come from the keys, per layer and *KV head*. They are read out of the KV memory
/// when a policy runs and cost nothing in a step.
enum class Signal : uint8_t {
  kColumnSum = 1,  ///< sum of the softmax weights that the token got, over the rows that count
  kLowCount = 2,   ///< rows that count in which it got less than low_factor / slots the row saw
  kLastRow = 4,    ///< its weight in the newest row
  kWindowSum = 8,  ///< as kColumnSum, over the last `window_rows` rows before the policy runs
  kKeyNorm = 16,   ///< Euclidean length of its key
  kKeyRows = 32,   ///< its key, [head_dim], RoPE applied
};

/// A set of signals.
class SignalSet {
 public:
  constexpr SignalSet() = default;
  constexpr SignalSet(std::initializer_list<Signal> signals) {
    for (const Signal s : signals) bits_ = static_cast<uint8_t>(bits_ | static_cast<uint8_t>(s));
  }
  constexpr bool Has(Signal s) const { return (bits_ & static_cast<uint8_t>(s)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool attention() const { return (bits_ & 15) != 0; }  ///< needs the second pass
  constexpr bool keys() const { return (bits_ & 48) != 0; }
  friend constexpr bool operator==(SignalSet, SignalSet) = default;

 private:
  uint8_t bits_ = 0;
};

/// Where signals of attention begin to count; positions before it never do. It depends on the
/// request alone, so signals are the same with a cold and with a warm prefix cache: a prefix hit
/// may reach up to the origin and no further, since the rows behind it have to be computed.
enum class Origin : uint8_t {
  kMark,       ///< the request's mark: the end of the prompt part that others share; 0 without one
  kWindow,     ///< window_rows before the prompt's end
  kPromptEnd,  ///< decoded tokens only
};

/// The heads of a model, and so the shape of the arrays.
struct HeadShape {
  uint32_t layers = 0;
  uint32_t q_heads = 0;  ///< a multiple of kv_heads; q_heads / kv_heads of them share a KV head
  uint32_t kv_heads = 0;

  uint32_t group() const { return q_heads / kv_heads; }
  friend bool operator==(const HeadShape&, const HeadShape&) = default;
};

/// Where one step adds one sequence's attention signals: a null array isn't wanted. The array of
/// (layer, query head) begins at `(layer * q_heads + head) * stride` and has one float per table
/// slot. Row r is the step's r-th new token of this sequence; it saw `active_length + r + 1` slots.
///
/// Whoever fills them **adds row after row, in order, onto what is there** (last_row: overwrites
/// every slot). A float sum depends on its order; added so, it is the same for any chunk size.
struct StepSignals {
  float* column_sum = nullptr;
  float* low_count = nullptr;
  float* last_row = nullptr;  ///< weights of the step's last row; slots the row didn't see: 0
  float* window_sum = nullptr;
  size_t stride = 0;         ///< floats; >= slots that the step's last row sees
  float low_factor = 1;      ///< low_count: weight < low_factor / slots that the row saw
  uint32_t count_from = 0;   ///< column_sum and low_count take rows [count_from, n)
  uint32_t window_from = 0;  ///< window_sum takes rows [window_from, n)

  bool wanted() const { return column_sum || low_count || last_row || window_sum; }
};

/// Reads keys when a policy runs; the only way to K/V bytes. The host implements it.
struct KeySource {
  virtual uint32_t head_dim() const = 0;
  /// K rows of the table slots [0, slots) of one sequence as f32, [slots][head_dim].
  virtual void ReadKeys(uint32_t layer, uint32_t kv_head, uint32_t slots, float* out) const = 0;

 protected:
  ~KeySource() = default;
};

/// The first position that counts: see Origin. REQUIRES: mark <= prompt_tokens.
constexpr uint32_t OriginPosition(Origin origin, uint32_t prompt_tokens, uint32_t mark,
                                  uint32_t window_rows) {
  if (origin == Origin::kMark) return mark;
  if (origin == Origin::kPromptEnd) return prompt_tokens;
  return prompt_tokens - std::min(prompt_tokens, window_rows);
}

}  // namespace hidane::vtoken
