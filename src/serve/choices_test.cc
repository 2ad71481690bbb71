#include "serve/choices.h"

#include <gtest/gtest.h>

#include <memory>

#include "text/tiny_vocab.h"

namespace hidane::serve {
namespace {

using engine::Event;
using engine::Finish;

class ChoicesTest : public testing::Test {
 protected:
  ChoicesTest() : text_(*text::TextModel::Load(text::TinyVocab::ChatMl().source())) {
    request_.n = 3;
    request_.stop = {"."};
  }
  /// A token of one choice, its `n`-th.
  static Event Token(uint32_t choice, char token, uint32_t n, Finish finish = Finish::kNone) {
    Event event;
    event.choice = choice;
    event.token = token;
    event.finish = finish;
    event.prompt_tokens = 10;
    event.cached_tokens = 4;
    event.completion_tokens = n;
    return event;
  }

  std::unique_ptr<text::TextModel> text_;
  ApiRequest request_;
};

TEST_F(ChoicesTest, EachEventGoesToItsAnswerAndAllMustEnd) {
  Choices choices(request_, *text_);
  EXPECT_EQ(choices.Push(Token(1, 'b', 1))->TakeText(), "b");
  EXPECT_EQ(choices.Push(Token(0, 'a', 1, Finish::kLength))->TakeText(), "a");
  EXPECT_EQ(choices.Push(Token(2, 'c', 1, Finish::kLength))->TakeText(), "c");
  EXPECT_FALSE(choices.done());
  EXPECT_EQ(choices.Push(Token(1, '.', 2))->finish_reason(), "stop");
  EXPECT_TRUE(choices.done());
  EXPECT_FALSE(choices.failed());
}

TEST_F(ChoicesTest, UsageHasThePromptOnceAndEveryToken) {
  Choices choices(request_, *text_);
  for (const uint32_t choice : {0u, 1u, 2u}) choices.Push(Token(choice, 'a', 5 + choice));
  EXPECT_EQ(choices.usage().prompt_tokens, 10u);
  EXPECT_EQ(choices.usage().cached_tokens, 4u);
  EXPECT_EQ(choices.usage().completion_tokens, 18u);
}

TEST_F(ChoicesTest, WhatComesAfterAStopStringIsNobodys) {
  Choices choices(request_, *text_);
  choices.Push(Token(1, '.', 1));
  Event cancelled = Token(1, 'x', 2, Finish::kCancelled);
  EXPECT_EQ(choices.Push(cancelled), nullptr);
  EXPECT_FALSE(choices.failed());
}

TEST_F(ChoicesTest, OneThatFailsFailsTheRequest) {
  Choices choices(request_, *text_);
  Event failed = Token(2, 'x', 1, Finish::kError);
  failed.error = "boom";
  choices.Push(failed);
  EXPECT_TRUE(choices.done());
  EXPECT_EQ(choices.error().what, "boom");
}

}  // namespace
}  // namespace hidane::serve
