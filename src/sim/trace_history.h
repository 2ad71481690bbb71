#pragma once
#include <cstdint>
#include <initializer_list>

#include "base/result.h"
#include "sim/trace_builder.h"

namespace hidane::sim {

/// A conversation of a format that says only what each turn adds: the prompt of a turn is all that
/// was said before, answers included, and then the new text.
class TraceHistory {
 public:
  explicit TraceHistory(uint32_t session) : session_(session) {}

  /// Adds `turn`, whose new text has `parts` of so many tokens, each with blocks of its own; they
  /// set its input_tokens. The caller then adds their runs. kInvalidArgument: the prompt grew too
  /// long.
  Status Begin(TraceBuilder& trace, TraceTurn turn, std::initializer_list<uint32_t> parts);
  uint32_t session() const { return session_; }
  uint32_t turns() const { return turns_; }

 private:
  uint32_t session_;
  uint32_t turns_ = 0;
  uint32_t blocks_ = 0;  // of the last prompt
  uint32_t tokens_ = 0;
  uint32_t answer_ = 0;  // tokens of the last answer
};

}  // namespace hidane::sim
