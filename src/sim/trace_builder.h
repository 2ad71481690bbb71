#pragma once
#include <cstdint>

#include "base/result.h"
#include "sim/trace.h"

namespace hidane::sim {

/// New blocks that a trace may hold, for its memory's sake: some hundred megabytes.
inline constexpr uint64_t kTraceBlocksMax = uint64_t{1} << 25;

/// Puts a trace together from sessions whose turns may come interleaved.
class TraceBuilder {
 public:
  TraceBuilder(TraceFormat format, uint32_t block_tokens);
  /// New blocks of all prompts together.
  void LimitBlocks(uint64_t blocks_max) { blocks_max_ = blocks_max; }

  /// Returns the session's number.
  uint32_t AddSession(uint32_t tenant = TraceSession::kNoTenant, bool subagent = false);
  /// kResourceExhausted: the trace holds more requests, runs or new blocks than fit.
  /// The runs that AddRun appends belong to the turn added last. `turn`'s keep is set, its runs
  /// are not.
  Status AddTurn(uint32_t session, const TraceTurn& turn);
  void AddRun(uint64_t first, uint32_t tokens);
  TraceTurn& last_turn() { return trace_.turns.back(); }

  uint32_t block_tokens() const { return trace_.block_tokens; }
  uint32_t Blocks(uint32_t tokens) const {
    return (tokens + trace_.block_tokens - 1) / trace_.block_tokens;
  }
  size_t sessions() const { return trace_.sessions.size(); }

  /// Turns in the order in which each session added them; timed sessions by their first turn's
  /// time. Empty afterwards.
  Trace Finish();

 private:
  static constexpr size_t kTurnsMax = 1 << 22;
  static constexpr size_t kRunsMax = 1 << 26;

  Trace trace_;
  uint64_t blocks_ = 0;  // in runs
  uint64_t blocks_max_ = kTraceBlocksMax;
  std::vector<uint32_t> session_of_;  // [turns]
};

/// The first id of text that nobody else has: `a`, `b` say whose.
uint64_t OwnIds(uint64_t a, uint64_t b);

}  // namespace hidane::sim
