#pragma once
#include <cstdint>
#include <string>

#include "sim/trace.h"

namespace hidane::sim {

/// How a count of tokens is distributed.
struct Spread {
  double mean = 0;
  uint32_t p50 = 0, p90 = 0, p99 = 0, max = 0;
};

/// What a trace is like. Ratios 0..1.
struct TraceStats {
  uint64_t requests = 0;
  uint64_t sessions = 0;  ///< without those that another session started
  double duration_s = 0;  ///< last arrival; 0 for a trace without times
  Spread input, output;   ///< tokens a request
  /// Of the input tokens, those of leading blocks that any request held before: what one infinite
  /// cache would give.
  double ideal_hit = 0;
  /// The same with what the session's turn before held alone.
  double session_hit = 0;
  uint64_t distinct_blocks = 0;
  uint64_t distinct_k1 = 0;
  Spread k1;  ///< tokens a request
};

TraceStats StatsOf(const Trace& trace);
/// A few lines that a person reads.
std::string Describe(const Trace& trace);

}  // namespace hidane::sim
