#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace hidane::sim {

enum class TraceFormat : uint8_t { kMooncake, kBailian, kClaudeCode, kAzure, kCsv, kGenerated };
std::string_view NameOf(TraceFormat format);

/// Consecutive blocks of a prompt: `first`, first + 1, ... Each holds Trace::block_tokens tokens,
/// the last one what is left of `tokens`.
struct TraceRun {
  uint64_t first = 0;  ///< an id says which text the block holds
  uint32_t tokens = 0;
};

/// One request. Its prompt is the first `keep` blocks of the turn before, then `runs` of
/// Trace::runs.
struct TraceTurn {
  Duration at{};     ///< after the trace's start; 0 where only the think time is known
  Duration think{};  ///< after the answer to the turn before
  uint32_t input_tokens = 0;
  uint32_t output_tokens = 1;
  uint32_t keep = 0;
  uint32_t k1_end = 0;  ///< marks in blocks, as in prompt::Identity
  uint32_t k2_end = 0;
  uint32_t first_run = 0;
  uint32_t runs = 0;
};

/// Turns that wait for each other; a single request is a session of one turn.
struct TraceSession {
  static constexpr uint32_t kNoTenant = ~0u;
  uint32_t first_turn = 0;
  uint32_t turns = 0;
  uint32_t tenant = kNoTenant;
  bool subagent = false;  ///< started by another session
};

/// Requests with their prompts as block ids: read from a file or generated. A value, shared by the
/// runs that replay it.
struct Trace {
  TraceFormat format = TraceFormat::kGenerated;
  uint32_t block_tokens = 64;
  bool timed = false;  ///< turns have times; else sessions start when others end
  std::vector<TraceSession> sessions;
  std::vector<TraceTurn> turns;
  std::vector<TraceRun> runs;

  std::span<const TraceTurn> TurnsOf(const TraceSession& session) const {
    return std::span(turns).subspan(session.first_turn, session.turns);
  }
  std::span<const TraceRun> RunsOf(const TraceTurn& turn) const {
    return std::span(runs).subspan(turn.first_run, turn.runs);
  }
};

/// The prompt of one turn after another as a chain of hashes with ends in tokens.
class PromptBuilder {
 public:
  /// `root`: the chain's value before block 0; another root makes every block another.
  explicit PromptBuilder(uint64_t root = 0) : root_(root) {}
  /// REQUIRES: `turn` follows the one applied last, or has keep = 0. Cost: its new blocks.
  void Apply(const Trace& trace, const TraceTurn& turn);

  uint64_t root() const { return root_; }
  const std::vector<uint64_t>& chain() const { return chain_; }
  const std::vector<uint32_t>& ends() const { return ends_; }

 private:
  uint64_t root_;
  std::vector<uint64_t> chain_;
  std::vector<uint32_t> ends_;
};

}  // namespace hidane::sim
