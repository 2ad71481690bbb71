#include "serve/choices.h"

namespace hidane::serve {

Choices::Choices(const ApiRequest& request, const text::TextModel& text)
    : answers_(request.n, Answer(request, text)) {}

Answer* Choices::Push(const engine::Event& event) {
  Answer& answer = answers_[event.choice];
  if (answer.done()) return nullptr;
  answer.Push(event);
  if (answer.failed()) failed_ = &answer;
  over_ += answer.done();
  return &answer;
}

Usage Choices::usage() const {
  Usage usage;
  for (const Answer& answer : answers_) {
    usage.prompt_tokens = answer.usage().prompt_tokens;
    usage.cached_tokens = answer.usage().cached_tokens;
    usage.completion_tokens += answer.usage().completion_tokens;
  }
  return usage;
}

}  // namespace hidane::serve
