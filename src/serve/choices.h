#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "serve/answer.h"
#include "serve/request.h"
#include "text/text.h"

namespace hidane::serve {

/// The answers to one request, `n` of them, out of the engine's events. Pure.
class Choices {
 public:
  /// `text` must outlive it.
  Choices(const ApiRequest& request, const text::TextModel& text);

  /// The answer that the event belongs to, with what is new in it; null if it was over.
  /// REQUIRES: !done().
  Answer* Push(const engine::Event& event);
  /// Every answer is over, or one has failed.
  bool done() const { return failed() || over_ == answers_.size(); }
  bool failed() const { return failed_ != nullptr; }
  Error error() const { return failed_->error(); }  ///< REQUIRES: failed()

  std::span<Answer> answers() { return answers_; }
  /// Of the request: its prompt once, and the tokens of all answers.
  Usage usage() const;

 private:
  std::vector<Answer> answers_;
  size_t over_ = 0;
  const Answer* failed_ = nullptr;
};

}  // namespace hidane::serve
