#include "sim/trace_parse.h"

#include <fmt/format.h>

#include <utility>

#include "sim/trace_json.h"
#include "sim/trace_lines.h"
#include "sim/trace_marks.h"

namespace hidane::sim {
namespace {

bool Blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

Status At(const std::string& source, uint64_t line, Status status) {
  if (status) return status;
  Error error = std::move(status).error();
  error.what = fmt::format("{}:{}: {}", source, line, error.what);
  return Fail(std::move(error));
}

}  // namespace

Result<std::unique_ptr<TraceLines>> RecognizeTrace(std::string_view first_line) {
  if (first_line.starts_with("TIMESTAMP,ContextTokens,GeneratedTokens")) return AzureLines();
  if (first_line.starts_with(
          "arrival_s,tenant,conversation,static_tokens,own_tokens,output_tokens")) {
    return CsvLines();
  }
  simdjson::dom::parser parser;
  const auto object = ParseObject(parser, first_line);
  if (object && Has(*object, "requests")) return ClaudeCodeLines();
  if (object && Has(*object, "chat_id")) return BailianLines();
  if (object && Has(*object, "input_length")) return MooncakeLines();
  return Fail(Code::kInvalidArgument,
              fmt::format("`{}` begins no trace format that is known (Mooncake, AIPerf, Bailian, "
                          "Claude Code, Azure, CSV)",
                          first_line.substr(0, 80)));
}

struct TraceParser::Impl {
  std::string source;
  uint64_t blocks_max;
  uint64_t line = 0;
  std::unique_ptr<TraceLines> lines = nullptr;

  Status Line(std::string_view text) {
    if (!lines) {
      HIDANE_TRY(lines, RecognizeTrace(text));
      lines->trace().LimitBlocks(blocks_max);
    }
    return lines->Read(text);
  }
};

TraceParser::TraceParser(std::string source, uint64_t blocks_max)
    : impl_(std::make_unique<Impl>(Impl{.source = std::move(source), .blocks_max = blocks_max})) {}

TraceParser::~TraceParser() = default;

Status TraceParser::Line(std::string_view line) {
  ++impl_->line;
  if (Blank(line)) return {};
  while (line.ends_with('\r')) line.remove_suffix(1);
  return At(impl_->source, impl_->line, impl_->Line(line));
}

Result<Trace> TraceParser::Finish() {
  Trace trace = impl_->lines ? impl_->lines->trace().Finish() : Trace{};
  if (trace.turns.empty()) {
    return Fail(Code::kInvalidArgument, fmt::format("{}: holds no request", impl_->source));
  }
  if (trace.format == TraceFormat::kMooncake || trace.format == TraceFormat::kBailian) {
    MarkByBranching(trace);
  }
  return trace;
}

}  // namespace hidane::sim
