#pragma once
#include <cstdint>

#include "prompt/body_reader.h"

namespace hidane::prompt {

/// Parts of the prompt, in stream order where tools come first.
enum Lane : uint8_t { kTemplate, kTemplateArgs, kDocuments, kTools, kFunctions, kSystem, kTurns };
inline constexpr size_t kLanes = kTurns + 1;

/// What is done with a top-level field.
enum class Field : uint8_t {
  kModel,
  kMessages,
  kPrompt,
  kSystemText,
  kLaneValue,
  kStream,
  kStreamOptions,
  kMaxTokens,
  kN,
};

constexpr uint8_t Bit(Api api) {
  return static_cast<uint8_t>(1u << static_cast<int>(api));
}
inline constexpr uint8_t kAny = 0xf;
inline constexpr uint8_t kOpenAi = Bit(Api::kChat) | Bit(Api::kCompletions);

/// A top-level field that the reader looks at; all others are the engine's.
struct KnownField {
  const char* name;
  Field field;
  uint8_t apis;
  Lane lane = kTurns;  ///< of kLaneValue
};
inline constexpr KnownField kFields[] = {
    {"model", Field::kModel, kAny},
    {"messages", Field::kMessages, Bit(Api::kChat) | Bit(Api::kMessages)},
    {"prompt", Field::kPrompt, Bit(Api::kCompletions)},
    {"input", Field::kPrompt, Bit(Api::kResponses)},
    {"instructions", Field::kSystemText, Bit(Api::kResponses)},
    {"system", Field::kSystemText, Bit(Api::kMessages)},
    {"tools", Field::kLaneValue, kAny, kTools},
    {"functions", Field::kLaneValue, Bit(Api::kChat), kFunctions},
    {"documents", Field::kLaneValue, Bit(Api::kChat), kDocuments},
    {"chat_template", Field::kLaneValue, Bit(Api::kChat), kTemplate},
    {"chat_template_kwargs", Field::kLaneValue, Bit(Api::kChat), kTemplateArgs},
    {"stream", Field::kStream, kAny},
    {"stream_options", Field::kStreamOptions, kOpenAi},
    {"max_tokens", Field::kMaxTokens, kAny},
    {"max_completion_tokens", Field::kMaxTokens, kAny},
    {"max_output_tokens", Field::kMaxTokens, kAny},
    {"n", Field::kN, kOpenAi},
};

/// The field without which a body has no prompt.
constexpr const char* PromptField(Api api) {
  switch (api) {
    case Api::kChat:
    case Api::kMessages:
      return "messages";
    case Api::kCompletions:
      return "prompt";
    case Api::kResponses:
      return "input";
  }
  return "";
}

}  // namespace hidane::prompt
