#pragma once
#include <cstdint>

#include "sim/trace.h"

namespace hidane::sim {

struct AgentsOptions {
  uint64_t seed = 1;
  uint32_t sessions = 400;
};

/// Agent sessions that grow: made up, with the statistics of Claude Code sessions
/// (agents_table.h), so that they need no file. What they keep of the real ones: turns a session,
/// first and last prompt, how a session's length and its beginning go together, answers, think
/// times, how unevenly it grows, histories that are rewritten, and static prefixes (tools + system
/// text, some 15k tokens) that sessions share by Zipf's law. A trace without times: sessions begin
/// when others end.
Trace GenerateAgents(const AgentsOptions& options);

/// `sessions` of the recorded sessions that GenerateAgents imitates, drawn by seed: no subagents,
/// all contexts within its bound. All of them where there are fewer.
Trace SampleAgents(const Trace& recorded, const AgentsOptions& options);

}  // namespace hidane::sim
