// Claude Code sessions in the delta coding of the trace collection: one session a line, its
// requests' block ids as differences.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/hash.h"
#include "base/rng.h"
#include "sim/trace_builder.h"
#include "sim/trace_json.h"
#include "sim/trace_lines.h"

namespace hidane::sim {
namespace {

constexpr int kNestedMax = 4;
constexpr uint32_t kBlocksMax = kTraceTokensMax / 16;

/// What a list of requests says once: its own or its session's.
struct Head {
  uint64_t scope = 0;  ///< added to ids, which mean nothing outside their session
  uint64_t tool_tokens = 0, system_tokens = 0;
};

Result<Head> ReadHead(const JsonObject& object, uint64_t scope) {
  HIDANE_TRY(const uint64_t tools, UintOr(object, "tool_tokens", kTraceTokensMax, 0));
  HIDANE_TRY(const uint64_t system, UintOr(object, "system_tokens", kTraceTokensMax, 0));
  return Head{scope, tools, system};
}

/// Turns one list of requests into a session of the trace.
///
/// Tools and system text of equal size under the same model are taken to be the same text in all
/// sessions: their ids are local, but sizes that agree to the token are no accident. So the first
/// blocks of a session, as its first request has them, get ids that all such sessions share.
class SessionReader {
 public:
  SessionReader(TraceBuilder& trace, const Head& head, bool subagent)
      : trace_(trace),
        head_(head),
        session_(trace.AddSession(TraceSession::kNoTenant, subagent)),
        k1_blocks_(
            static_cast<uint32_t>((head.tool_tokens + head.system_tokens) / trace.block_tokens())) {
  }

  Status Read(const JsonObject& request) {
    HIDANE_TRY(TraceTurn turn, ReadTurn(request));
    if (turns_++ == 0) {
      HIDANE_TRY(const std::string_view model, Text(request, "model"));
      shared_ = OwnIds(Xxh3(model), head_.tool_tokens << 32 | head_.system_tokens);
    }
    HIDANE_CHECK_OK(trace_.AddTurn(session_, turn));
    blocks_ = turn.keep;
    HIDANE_CHECK_OK(AddRuns(request, turn));
    const uint32_t tail = turn.input_tokens - blocks_ * trace_.block_tokens();
    trace_.AddRun(OwnIds(head_.scope, uint64_t{session_} << 32 | turns_), tail);
    Mark(turn.keep);
    return {};
  }

 private:
  Result<TraceTurn> ReadTurn(const JsonObject& request) {
    TraceTurn turn;
    HIDANE_TRY(const uint64_t input, Uint(request, "in", kTraceTokensMax));
    HIDANE_TRY(const uint64_t output, Uint(request, "out", kTraceTokensMax));
    HIDANE_TRY(const double think, NumberOr(request, "think_time", kTraceSecondsMax, 0));
    HIDANE_TRY(const uint64_t keep, Uint(request, "keep", kBlocksMax));
    if (input == 0) return Fail(Code::kInvalidArgument, "in is 0");
    if (keep > blocks_ + (partial_ ? 1 : 0)) {
      return Fail(Code::kInvalidArgument,
                  fmt::format("keep is {}, but the request before has {} blocks", keep, blocks_));
    }
    turn.input_tokens = static_cast<uint32_t>(input);
    turn.output_tokens = static_cast<uint32_t>(std::max<uint64_t>(output, 1));
    turn.think = FromSeconds(think);
    turn.keep = static_cast<uint32_t>(std::min<uint64_t>(keep, blocks_));
    keeps_partial_ = keep > blocks_;
    return turn;
  }

  /// Whole blocks only: a partial one at the end is the request's own text.
  Status AddRuns(const JsonObject& request, const TraceTurn& turn) {
    const uint32_t whole = turn.input_tokens / trace_.block_tokens();
    const uint32_t all = trace_.Blocks(turn.input_tokens);
    HIDANE_TRY(const simdjson::dom::array runs, Array(request, "add"));
    uint32_t given = turn.keep;
    if (keeps_partial_) AddBlock(partial_id_, given++, whole);
    partial_ = false;
    for (const simdjson::dom::element run : runs) {
      HIDANE_TRY(const uint64_t first, UintOf(run.at(0), INT64_MAX));
      HIDANE_TRY(const uint64_t count, UintOf(run.at(1), kBlocksMax));
      if (given + count > all) return Mismatch(given + count, turn.input_tokens);
      for (uint64_t i = 0; i < count; ++i) AddBlock(first + i, given++, whole);
    }
    return given < whole ? Mismatch(given, turn.input_tokens) : Status{};
  }

  static Result<uint64_t> UintOf(simdjson::simdjson_result<simdjson::dom::element> value,
                                 uint64_t max) {
    simdjson::dom::element element;
    if (value.get(element)) return Fail(Code::kInvalidArgument, "add holds no [start, count]");
    return sim::UintOf(element, "add", max);
  }

  static Status Mismatch(uint64_t blocks, uint32_t tokens) {
    return Fail(Code::kInvalidArgument,
                fmt::format("keep and add give {} blocks for `in` of {} tokens", blocks, tokens));
  }

  void AddBlock(uint64_t id, uint32_t position, uint32_t whole) {
    if (position >= whole) {
      partial_ = true;
      partial_id_ = id;
      return;
    }
    trace_.AddRun(GlobalId(id, position), trace_.block_tokens());
    blocks_ = position + 1;
  }

  uint64_t GlobalId(uint64_t id, uint32_t position) {
    if (turns_ == 1 && position < k1_blocks_) k1_ids_.push_back(id);
    const bool shared = position < k1_ids_.size() && k1_ids_[position] == id;
    return shared ? shared_ + position : head_.scope + id;
  }

  /// The first request ends with the first user message, so K2 is its end; a history that is
  /// rewritten (compaction) begins a new conversation.
  void Mark(uint32_t keep) {
    if (turns_ == 1 || keep < k2_end_) k2_end_ = blocks_;
    trace_.last_turn().k1_end = std::min(k1_blocks_, blocks_);
    trace_.last_turn().k2_end = k2_end_;
  }

  TraceBuilder& trace_;
  const Head head_;
  const uint32_t session_;
  const uint32_t k1_blocks_;
  uint64_t shared_ = 0;           // first id of the tools and system text
  std::vector<uint64_t> k1_ids_;  // the session's own ids of them
  uint32_t turns_ = 0;
  uint32_t blocks_ = 0;  // whole ones of the last prompt
  uint32_t k2_end_ = 0;
  bool partial_ = false;  // the last prompt's partial block had an id
  bool keeps_partial_ = false;
  uint64_t partial_id_ = 0;
};

Status ReadRequests(TraceBuilder& trace, const JsonObject& owner, const Head& head, int depth) {
  HIDANE_TRY(const simdjson::dom::array requests, Array(owner, "requests"));
  SessionReader session(trace, head, depth > 0);
  for (const simdjson::dom::element entry : requests) {
    JsonObject request;
    if (entry.get(request)) return Fail(Code::kInvalidArgument, "requests holds no object");
    HIDANE_TRY(const std::string_view type, Text(request, "type"));
    if (type != "subagent") {
      HIDANE_CHECK_OK(session.Read(request));
      continue;
    }
    if (depth == kNestedMax) return Fail(Code::kInvalidArgument, "subagents nest too deep");
    HIDANE_TRY(const Head nested, ReadHead(request, head.scope));
    HIDANE_CHECK_OK(ReadRequests(trace, request, nested, depth + 1));
  }
  return {};
}

class ClaudeCode final : public TraceLines {
 public:
  ClaudeCode() : TraceLines(TraceFormat::kClaudeCode, kBlock) {}
  Status Read(std::string_view text) override {
    HIDANE_TRY(const JsonObject line, ParseObject(parser_, text));
    HIDANE_TRY(const std::string_view id, Text(line, "id"));
    HIDANE_TRY(const uint64_t block, Uint(line, "block_size", kTraceTokensMax));
    if (block != kBlock) {
      return Fail(Code::kInvalidArgument, fmt::format("block_size is {}, not {}", block, kBlock));
    }
    HIDANE_TRY(const Head head, ReadHead(line, Mix64(Xxh3(id))));
    return ReadRequests(trace_, line, head, 0);
  }

 private:
  static constexpr uint32_t kBlock = 64;

  simdjson::dom::parser parser_;
};

}  // namespace

std::unique_ptr<TraceLines> ClaudeCodeLines() {
  return std::make_unique<ClaudeCode>();
}

}  // namespace hidane::sim
