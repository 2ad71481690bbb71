#include "sim/trace_history.h"

#include <fmt/format.h>

#include "sim/trace_lines.h"

namespace hidane::sim {

Status TraceHistory::Begin(TraceBuilder& trace, TraceTurn turn,
                           std::initializer_list<uint32_t> parts) {
  uint64_t tokens = uint64_t{tokens_} + answer_;
  uint32_t blocks = blocks_ + trace.Blocks(answer_);
  for (const uint32_t part : parts) {
    tokens += part;
    blocks += trace.Blocks(part);
  }
  if (tokens > kTraceTokensMax) {
    return Fail(Code::kInvalidArgument,
                fmt::format("the conversation's prompt grew to {} tokens, more than {}", tokens,
                            kTraceTokensMax));
  }
  turn.keep = blocks_;
  blocks_ = blocks;
  tokens_ = turn.input_tokens = static_cast<uint32_t>(tokens);
  HIDANE_CHECK_OK(trace.AddTurn(session_, turn));
  trace.AddRun(OwnIds(session_, ~uint64_t{turns_}), answer_);
  answer_ = turn.output_tokens;
  ++turns_;
  return {};
}

}  // namespace hidane::sim
