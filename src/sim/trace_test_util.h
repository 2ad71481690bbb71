#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "sim/trace_parse.h"

namespace hidane::sim {

/// Reads a trace from text; lines end with a newline.
inline Result<Trace> ParseTrace(std::string_view text) {
  TraceParser parser("t");
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    HIDANE_CHECK_OK(parser.Line(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parser.Finish();
}

inline Trace MustParse(std::string_view text) {
  Result<Trace> trace = ParseTrace(text);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().what);
  return trace ? *std::move(trace) : Trace{};
}

/// The trace file of that name under $HIDANE_TRACES; nullopt when that is unset.
inline std::optional<Trace> PublicTrace(const std::string& name) {
  const char* folder = std::getenv("HIDANE_TRACES");
  if (folder == nullptr) return std::nullopt;
  Result<Trace> trace = ReadTrace(std::string(folder) + "/" + name);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().what);
  return trace ? std::optional(*std::move(trace)) : std::nullopt;
}

/// Chains of all turns of a session.
inline std::vector<std::vector<uint64_t>> ChainsOf(const Trace& trace, size_t session) {
  std::vector<std::vector<uint64_t>> chains;
  PromptBuilder prompt;
  for (const TraceTurn& turn : trace.TurnsOf(trace.sessions[session])) {
    prompt.Apply(trace, turn);
    chains.push_back(prompt.chain());
  }
  return chains;
}

}  // namespace hidane::sim
