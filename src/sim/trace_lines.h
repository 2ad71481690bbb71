#pragma once
#include <memory>
#include <string_view>

#include "base/result.h"
#include "sim/trace_builder.h"

namespace hidane::sim {

/// One trace format. Errors name the value; the caller adds file and line.
class TraceLines {
 public:
  TraceLines(TraceFormat format, uint32_t block_tokens) : trace_(format, block_tokens) {}
  virtual ~TraceLines() = default;
  virtual Status Read(std::string_view line) = 0;
  TraceBuilder& trace() { return trace_; }

 protected:
  TraceBuilder trace_;
};

std::unique_ptr<TraceLines> MooncakeLines();  ///< also AIPerf's multi-turn form
std::unique_ptr<TraceLines> BailianLines();
std::unique_ptr<TraceLines> ClaudeCodeLines();
std::unique_ptr<TraceLines> AzureLines();
std::unique_ptr<TraceLines> CsvLines();

/// kInvalidArgument: no format that is known.
Result<std::unique_ptr<TraceLines>> RecognizeTrace(std::string_view first_line);

// Bounds on what a line may say.
inline constexpr uint32_t kTraceTokensMax = 1 << 24;
inline constexpr double kTraceSecondsMax = 1e9;

}  // namespace hidane::sim
