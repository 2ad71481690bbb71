#include "sim/trace_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/rng.h"

namespace hidane::sim {

TraceBuilder::TraceBuilder(TraceFormat format, uint32_t block_tokens) {
  trace_.format = format;
  trace_.block_tokens = block_tokens;
  trace_.timed = format != TraceFormat::kClaudeCode && format != TraceFormat::kGenerated;
}

uint32_t TraceBuilder::AddSession(uint32_t tenant, bool subagent) {
  trace_.sessions.push_back({.tenant = tenant, .subagent = subagent});
  return static_cast<uint32_t>(trace_.sessions.size() - 1);
}

Status TraceBuilder::AddTurn(uint32_t session, const TraceTurn& turn) {
  if (trace_.turns.size() >= kTurnsMax || trace_.runs.size() >= kRunsMax || blocks_ > blocks_max_) {
    return Fail(Code::kResourceExhausted,
                fmt::format("the trace holds more than {} requests, {} runs or {} new blocks",
                            kTurnsMax, kRunsMax, blocks_max_));
  }
  trace_.turns.push_back(turn);
  trace_.turns.back().first_run = static_cast<uint32_t>(trace_.runs.size());
  trace_.turns.back().runs = 0;
  session_of_.push_back(session);
  ++trace_.sessions[session].turns;
  return {};
}

void TraceBuilder::AddRun(uint64_t first, uint32_t tokens) {
  HIDANE_ASSERT(!trace_.turns.empty());
  if (tokens == 0) return;
  blocks_ += Blocks(tokens);
  TraceTurn& turn = trace_.turns.back();
  if (turn.runs > 0) {
    TraceRun& last = trace_.runs.back();
    const uint32_t blocks = last.tokens / block_tokens();
    if (last.tokens % block_tokens() == 0 && last.first + blocks == first) {
      last.tokens += tokens;
      return;
    }
  }
  trace_.runs.push_back({first, tokens});
  ++turn.runs;
}

Trace TraceBuilder::Finish() {
  uint32_t at = 0;
  for (TraceSession& session : trace_.sessions) {
    session.first_turn = at;
    at += std::exchange(session.turns, 0);
  }
  std::vector<TraceTurn> turns(trace_.turns.size());
  for (size_t i = 0; i < trace_.turns.size(); ++i) {
    TraceSession& session = trace_.sessions[session_of_[i]];
    turns[session.first_turn + session.turns++] = trace_.turns[i];
  }
  trace_.turns = std::move(turns);
  std::erase_if(trace_.sessions, [](const TraceSession& s) { return s.turns == 0; });
  if (trace_.timed) {
    std::stable_sort(trace_.sessions.begin(), trace_.sessions.end(), [&](auto& a, auto& b) {
      return trace_.turns[a.first_turn].at < trace_.turns[b.first_turn].at;
    });
  }
  session_of_.clear();
  return std::exchange(trace_, {});
}

uint64_t OwnIds(uint64_t a, uint64_t b) {
  return Mix64(Mix64(a ^ 0x5851f42d4c957f2d) ^ b);
}

}  // namespace hidane::sim
