#include "load/answer.h"

#include <simdjson.h>

#include <array>

namespace hidane::load {
namespace {

constexpr size_t kDetailMax = 200;

/// Text of a chat chunk (content, reasoning or a tool call's arguments) or of a completion chunk.
bool HasText(simdjson::dom::element choice) {
  std::string_view text;
  if (!choice["text"].get(text) && !text.empty()) return true;
  for (const std::string_view key : {"content", "reasoning_content"}) {
    if (!choice["delta"][key].get(text) && !text.empty()) return true;
  }
  simdjson::dom::array calls;
  return !choice["delta"]["tool_calls"].get(calls) && calls.size() > 0;
}

uint32_t Count(simdjson::simdjson_result<simdjson::dom::element> value) {
  uint64_t n = 0;
  return value.get(n) ? 0 : static_cast<uint32_t>(std::min<uint64_t>(n, UINT32_MAX));
}

}  // namespace

std::string_view Name(End end) {
  static constexpr std::array<std::string_view, kEnds> kNames = {
      "ok",       "connect",     "timeout", "http_429", "http_4xx",
      "http_5xx", "error_event", "cut",     "protocol", "not_sent"};
  return kNames[static_cast<size_t>(end)];
}

End EndOfStatus(int http_status) {
  if (http_status == 429) return End::kHttp429;
  if (http_status >= 500) return End::kHttp5xx;
  return http_status >= 400 ? End::kHttp4xx : End::kProtocol;
}

void AnswerReader::OnEvent(std::string_view data, Duration now) {
  if (failed_ || done_) return;
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  thread_local simdjson::dom::parser parser;
  simdjson::dom::element doc;
  if (parser.parse(data.data(), data.size()).get(doc)) {
    failed_ = true;
    outcome_.end = End::kProtocol;
    outcome_.detail = "event is not JSON";
    return;
  }
  simdjson::dom::element error;
  if (!doc["error"].get(error) && !error.is_null()) {
    failed_ = true;
    outcome_.end = End::kErrorEvent;
    outcome_.detail = simdjson::minify(error).substr(0, kDetailMax);
    return;
  }
  simdjson::dom::array choices;
  if (!doc["choices"].get(choices)) {
    for (const simdjson::dom::element choice : choices) {
      if (!HasText(choice)) continue;
      if (outcome_.first == Duration{0}) outcome_.first = now;
      outcome_.last = now;
    }
  }
  simdjson::dom::object usage;
  if (!doc["usage"].get(usage)) {
    outcome_.usage_seen = true;
    outcome_.prompt_tokens = Count(usage["prompt_tokens"]);
    outcome_.completion_tokens = Count(usage["completion_tokens"]);
    outcome_.cached_tokens = Count(doc["usage"]["prompt_tokens_details"]["cached_tokens"]);
  }
}

void AnswerReader::OnEnd(Duration now) {
  outcome_.done = now;
  if (failed_) return;
  if (!done_) {
    outcome_.end = End::kCut;
    outcome_.detail = "stream ended without [DONE]";
  } else {
    outcome_.end = End::kOk;
  }
}

}  // namespace hidane::load
