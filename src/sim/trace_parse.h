#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sim/trace_builder.h"

namespace hidane::sim {

/// Reads a trace line by line; the first line that is not blank tells the format. Formats, and
/// what each can say: docs/simulator.md.
class TraceParser {
 public:
  /// `source` names the trace in errors; `blocks_max` bounds its memory.
  explicit TraceParser(std::string source, uint64_t blocks_max = kTraceBlocksMax);
  ~TraceParser();

  /// kInvalidArgument `SOURCE:LINE: what is wrong with which value`; kResourceExhausted when the
  /// trace is larger than fits. After an error only destruction is allowed.
  Status Line(std::string_view line);
  /// kInvalidArgument: no request at all.
  Result<Trace> Finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Reads a file, gzip or plain. kNotFound: cannot be opened; kDataLoss: broken gzip; else as above.
Result<Trace> ReadTrace(const std::string& path);

}  // namespace hidane::sim
