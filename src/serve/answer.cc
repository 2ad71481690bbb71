#include "serve/answer.h"

#include <algorithm>
#include <utility>

namespace hidane::serve {

using engine::Finish;

Answer::Answer(const ApiRequest& request, const text::TextModel& text)
    : text_(text),
      scores_(request.logprobs),
      top_logprobs_(request.top_logprobs),
      stops_(request.stop) {}

void Answer::Push(const engine::Event& event) {
  usage_ = {event.prompt_tokens, event.cached_tokens, event.completion_tokens};
  if (event.finish == Finish::kCancelled || event.finish == Finish::kError) {
    failure_ = event.finish;
    failure_message_ = event.error;
    return;
  }
  if (event.token >= 0 && event.finish != Finish::kStop) {
    new_text_ += stops_.Push(utf8_.Push(text_.TokenBytes(event.token)));
    Score(event);
  }
  if (stops_.stopped() || event.finish == Finish::kStop) return End("stop");
  if (event.finish == Finish::kLength) return End("length");
}

void Answer::Score(const engine::Event& event) {
  if (!scores_ || event.top.empty()) return;
  const size_t n = std::min<size_t>(top_logprobs_, event.top.size() - 1);
  const auto first = event.top.begin() + 1;
  new_scored_.push_back({event.top.front(), {first, first + static_cast<ptrdiff_t>(n)}});
}

void Answer::End(std::string_view reason) {
  new_text_ += stops_.Push(utf8_.Flush());
  // The bytes of a code point cut by the end may complete a stop string.
  finish_reason_ = stops_.stopped() ? "stop" : reason;
  new_text_ += stops_.Flush();
}

Error Answer::error() const {
  if (failure_ == Finish::kCancelled) return {Code::kUnavailable, "the engine is stopping", {}};
  return {Code::kInternal, failure_message_, {}};
}

std::string Answer::TakeText() {
  return std::exchange(new_text_, {});
}
std::vector<ScoredToken> Answer::TakeScored() {
  return std::exchange(new_scored_, {});
}

}  // namespace hidane::serve
