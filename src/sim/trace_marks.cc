#include "sim/trace_marks.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>

namespace hidane::sim {
namespace {

/// Calls `f(turn, chain)` for every turn, with the chain of its prompt.
template <class F>
void ForEachPrompt(Trace& trace, F f) {
  for (const TraceSession& session : trace.sessions) {
    PromptBuilder prompt;
    for (uint32_t i = 0; i < session.turns; ++i) {
      TraceTurn& turn = trace.turns[session.first_turn + i];
      prompt.Apply(trace, turn);
      f(turn, prompt.chain());
    }
  }
}

}  // namespace

void MarkByBranching(Trace& trace) {
  boost::unordered_flat_map<uint64_t, uint32_t> children;  // by the chain value of the block
  ForEachPrompt(trace, [&](TraceTurn& turn, const std::vector<uint64_t>& chain) {
    for (size_t i = turn.keep; i < chain.size(); ++i) {
      const bool is_new = children.try_emplace(chain[i], 0).second;
      if (is_new && i > 0) ++children[chain[i - 1]];
    }
  });
  ForEachPrompt(trace, [&](TraceTurn& turn, const std::vector<uint64_t>& chain) {
    const auto blocks = static_cast<uint32_t>(chain.size());
    uint32_t k1 = blocks;
    while (k1 > 0 && children[chain[k1 - 1]] < kBranches) --k1;
    turn.k1_end = k1;
    turn.k2_end = std::min(k1 + 1, blocks);
  });
}

}  // namespace hidane::sim
