#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "serve/request.h"
#include "serve/stop_matcher.h"
#include "text/text.h"
#include "text/utf8_stream.h"

namespace hidane::serve {

struct Usage {
  uint32_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
};

/// A token with its log-probability and those of the most likely ones.
struct ScoredToken {
  engine::TokenLogprob chosen;
  std::vector<engine::TokenLogprob> top;
};

/// The text of one answer, out of the engine's events. Never shows a part of a code point, of a
/// stop string, or anything behind one. Pure.
class Answer {
 public:
  /// `text` must outlive it.
  Answer(const ApiRequest& request, const text::TextModel& text);

  /// REQUIRES: !done().
  void Push(const engine::Event& event);
  /// The answer is over; the engine needs not go on.
  bool done() const { return !finish_reason_.empty() || failed(); }
  /// "stop" or "length"; empty before the end and for an answer that failed.
  std::string_view finish_reason() const { return finish_reason_; }
  bool failed() const { return failure_ != engine::Finish::kNone; }
  Error error() const;  ///< REQUIRES: failed()

  std::string TakeText();                        ///< what is new since the last call
  std::vector<ScoredToken> TakeScored();         ///< likewise, when asked for
  const Usage& usage() const { return usage_; }  ///< so far

 private:
  void Score(const engine::Event& event);
  void End(std::string_view reason);

  const text::TextModel& text_;
  bool scores_;
  uint32_t top_logprobs_;
  text::Utf8Stream utf8_;
  StopMatcher stops_;
  std::string new_text_;
  std::vector<ScoredToken> new_scored_;
  Usage usage_;
  std::string_view finish_reason_;
  engine::Finish failure_ = engine::Finish::kNone;
  std::string failure_message_;
};

}  // namespace hidane::serve
