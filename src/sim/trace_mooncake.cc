// Mooncake (FAST'25 release), which AIPerf extends by conversations, and Alibaba's Bailian: one
// request a line, its prompt as ids of blocks.
#include <fmt/format.h>

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <string>

#include "base/hash.h"
#include "sim/trace_history.h"
#include "sim/trace_json.h"
#include "sim/trace_lines.h"

namespace hidane::sim {
namespace {

constexpr uint32_t kMooncakeBlock = 512;
constexpr uint32_t kBailianBlock = 16;

/// Lengths and time that both formats have; `unit_s` is a second in the format's time unit.
Result<TraceTurn> ReadTurn(const JsonObject& line, double unit_s) {
  TraceTurn turn;
  HIDANE_TRY(const double at, NumberOr(line, "timestamp", kTraceSecondsMax / unit_s, 0));
  HIDANE_TRY(const uint64_t input, Uint(line, "input_length", kTraceTokensMax));
  HIDANE_TRY(const uint64_t output, UintOr(line, "output_length", kTraceTokensMax, 1));
  if (input == 0) return Fail(Code::kInvalidArgument, "input_length is 0");
  turn.at = FromSeconds(at * unit_s);
  turn.input_tokens = static_cast<uint32_t>(input);
  turn.output_tokens = static_cast<uint32_t>(std::max<uint64_t>(output, 1));
  return turn;
}

/// Appends the new text of the turn added last. Tokens that no id covers are its own.
Status AddText(TraceBuilder& trace, const JsonObject& line, uint32_t tokens, uint64_t own) {
  if (Has(line, "hash_ids")) {
    HIDANE_TRY(const simdjson::dom::array ids, Array(line, "hash_ids"));
    if (ids.size() > trace.Blocks(tokens)) {
      return Fail(Code::kInvalidArgument,
                  fmt::format("hash_ids has {} entries, but input_length {} has {} blocks of {}",
                              ids.size(), tokens, trace.Blocks(tokens), trace.block_tokens()));
    }
    for (const simdjson::dom::element id : ids) {
      HIDANE_TRY(const uint64_t value, UintOf(id, "hash_ids", INT64_MAX));
      const uint32_t block = std::min(tokens, trace.block_tokens());
      trace.AddRun(value, block);
      tokens -= block;
    }
  }
  trace.AddRun(own, tokens);
  return {};
}

class Mooncake final : public TraceLines {
 public:
  Mooncake() : TraceLines(TraceFormat::kMooncake, kMooncakeBlock) {}
  Status Read(std::string_view text) override {
    HIDANE_TRY(const JsonObject line, ParseObject(parser_, text));
    HIDANE_TRY(TraceTurn turn, ReadTurn(line, 1e-3));
    HIDANE_TRY(const double delay, NumberOr(line, "delay", kTraceSecondsMax * 1e3, 0));
    turn.think = FromSeconds(delay * 1e-3);
    const uint32_t fresh = turn.input_tokens;
    TraceHistory single(0);
    HIDANE_TRY(TraceHistory * history, Find(line, single));
    HIDANE_CHECK_OK(history->Begin(trace_, turn, {fresh}));
    return AddText(trace_, line, fresh, OwnIds(history->session(), history->turns()));
  }

 private:
  /// The line's conversation; `single` where it names none.
  Result<TraceHistory*> Find(const JsonObject& line, TraceHistory& single) {
    simdjson::dom::element id;
    if (line.at_key("session_id").get(id)) {
      single = TraceHistory(trace_.AddSession());
      return &single;
    }
    const auto [it, is_new] =
        sessions_.try_emplace(Xxh3(std::string(simdjson::minify(id))), TraceHistory(0));
    if (is_new) it->second = TraceHistory(trace_.AddSession());
    return &it->second;
  }

  simdjson::dom::parser parser_;
  boost::unordered_flat_map<uint64_t, TraceHistory> sessions_;
};

class Bailian final : public TraceLines {
 public:
  Bailian() : TraceLines(TraceFormat::kBailian, kBailianBlock) {}
  Status Read(std::string_view text) override {
    HIDANE_TRY(const JsonObject line, ParseObject(parser_, text));
    HIDANE_TRY(const TraceTurn turn, ReadTurn(line, 1));
    HIDANE_TRY(const uint64_t chat, Uint(line, "chat_id", INT64_MAX));
    const uint32_t session = SessionOf(line);
    session_of_chat_[chat] = session;
    HIDANE_CHECK_OK(trace_.AddTurn(session, turn));
    return AddText(trace_, line, turn.input_tokens, OwnIds(chat, 0));
  }

 private:
  /// A parent that the trace does not hold (it began earlier) makes a session of its own.
  uint32_t SessionOf(const JsonObject& line) {
    uint64_t parent = 0;
    if (!line.at_key("parent_chat_id").get(parent)) {
      const auto it = session_of_chat_.find(parent);
      if (it != session_of_chat_.end()) return it->second;
    }
    return trace_.AddSession();
  }

  simdjson::dom::parser parser_;
  boost::unordered_flat_map<uint64_t, uint32_t> session_of_chat_;
};

}  // namespace

std::unique_ptr<TraceLines> MooncakeLines() {
  return std::make_unique<Mooncake>();
}

std::unique_ptr<TraceLines> BailianLines() {
  return std::make_unique<Bailian>();
}

}  // namespace hidane::sim
