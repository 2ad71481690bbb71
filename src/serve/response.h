#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "serve/answer.h"
#include "serve/request.h"

namespace hidane::serve {

/// Writes the answers of one chat or completion request as OpenAI's clients read them: a whole
/// body, or server-sent events. Pure: bytes out.
///
///   stream:  First* (Delta | Last)* Usage? Done        (First only for chats)
///
/// Each choice has one First and one Last, and no Delta behind that.
class ResponseWriter {
 public:
  struct Identity {
    Endpoint endpoint;  ///< kChat or kCompletion
    std::string id;     ///< "chatcmpl-..." or "cmpl-..."
    std::string model;
    int64_t created_unix_s;
  };
  /// `text` must outlive it. `include_usage`: a stream's chunks carry a usage, null until the last.
  ResponseWriter(Identity identity, const text::TextModel& text, bool logprobs, bool include_usage);

  struct Choice {
    std::string text;
    std::string_view finish_reason;
    std::vector<ScoredToken> scored;
  };
  std::string Whole(std::span<const Choice> choices, const Usage& usage);

  std::string First(uint32_t choice);  ///< the role; REQUIRES: kChat
  std::string Delta(uint32_t choice, std::string_view answer, std::span<const ScoredToken> scored);
  std::string Last(uint32_t choice, std::string_view finish_reason);
  std::string UsageEvent(const Usage& usage);
  static std::string Done();
  static std::string ErrorEvent(const Error& error);

 private:
  class Builder;
  std::string Chunk(uint32_t choice, std::string_view delta_json, std::string_view answer,
                    std::string_view finish_reason, std::span<const ScoredToken> scored);
  bool chat() const { return identity_.endpoint == Endpoint::kChat; }

  Identity identity_;
  const text::TextModel& text_;
  bool logprobs_;
  bool include_usage_;
  // Code points written so far of each choice, for completions' logprobs.
  std::vector<uint64_t> text_offsets_;
};

/// Bodies of the small endpoints.
std::string ModelsBody(std::string_view model_id, uint32_t context_length, int64_t created_unix_s);
/// Body of /hidane/kv.
std::string KvBody(const engine::KvMap& map);
std::string TokenizeBody(std::span<const TokenId> tokens, uint32_t context_length);
std::string DetokenizeBody(std::string_view text);

}  // namespace hidane::serve
