// Trace files: whatever is accepted must be a trace that the simulator can replay.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "sim/trace_parse.h"

namespace {

using namespace hidane::sim;

void Check(bool holds) {
  if (!holds) __builtin_trap();
}

void CheckReplays(const Trace& trace) {
  size_t turns = 0;
  for (const TraceSession& session : trace.sessions) {
    PromptBuilder prompt;
    for (const TraceTurn& turn : trace.TurnsOf(session)) {
      Check(turn.keep <= prompt.chain().size());
      prompt.Apply(trace, turn);
      Check(!prompt.ends().empty() && prompt.ends().back() == turn.input_tokens);
      Check(turn.k1_end <= turn.k2_end && turn.k2_end <= prompt.chain().size());
      Check(turn.output_tokens > 0 && turn.at.count() >= 0 && turn.think.count() >= 0);
      ++turns;
    }
  }
  Check(turns == trace.turns.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  TraceParser parser("fuzz", 1 << 18);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (!parser.Line(text.substr(0, end))) return 0;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const auto trace = parser.Finish();
  if (trace) CheckReplays(*trace);
  return 0;
}
