#include "sim/trace.h"

#include <algorithm>

#include "base/assert.h"
#include "base/rng.h"

namespace hidane::sim {

std::string_view NameOf(TraceFormat format) {
  switch (format) {
    case TraceFormat::kMooncake:
      return "mooncake";
    case TraceFormat::kBailian:
      return "bailian";
    case TraceFormat::kClaudeCode:
      return "claude-code";
    case TraceFormat::kAzure:
      return "azure";
    case TraceFormat::kCsv:
      return "csv";
    case TraceFormat::kGenerated:
      return "generated";
  }
  return "?";
}

void PromptBuilder::Apply(const Trace& trace, const TraceTurn& turn) {
  HIDANE_ASSERT(turn.keep <= chain_.size());
  chain_.resize(turn.keep);
  ends_.resize(turn.keep);
  uint64_t hash = chain_.empty() ? root_ : chain_.back();
  uint32_t end = ends_.empty() ? 0 : ends_.back();
  for (const TraceRun& run : trace.RunsOf(turn)) {
    uint64_t id = run.first;
    for (uint32_t left = run.tokens; left > 0;) {
      const uint32_t tokens = std::min(left, trace.block_tokens);
      // Linked, so that ids which name a block's text alone do as well as ids which name a prefix.
      chain_.push_back(hash = Mix64(hash ^ Mix64(id++)));
      ends_.push_back(end += tokens);
      left -= tokens;
    }
  }
}

}  // namespace hidane::sim
