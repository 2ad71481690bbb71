#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engine/engine.h"

namespace hidane::serve {

enum class Endpoint : uint8_t { kChat = 1, kCompletion = 2, kTokenize = 4, kDetokenize = 8 };

/// What an API request says, checked. Which members can be set depends on the endpoint.
struct ApiRequest {
  std::string model;
  // The prompt: messages, or text, or tokens.
  std::string messages;  ///< raw JSON array, its inside unchecked
  std::string tools;     ///< likewise; empty if there are none or tool_choice is "none"
  std::string prompt;
  std::vector<TokenId> tokens;
  bool add_generation_prompt = true;
  bool add_special_tokens = true;  ///< a plain prompt starts with the model's bos, if it has one

  uint32_t n = 1;  ///< answers wanted, 1..kChoicesMax
  std::optional<uint32_t> max_tokens;
  engine::SamplingParams sampling;
  std::vector<std::string> stop;
  std::vector<TokenId> stop_token_ids;
  std::string cache_salt;
  bool ignore_eos = false;
  std::optional<engine::KvPolicy> kv_policy;  ///< absent: the server's
  bool stream = false, include_usage = false;
  bool logprobs = false;      ///< of the chosen token
  uint32_t top_logprobs = 0;  ///< and of so many more; 0..kTopLogprobsMax
};

constexpr uint32_t kChoicesMax = 128;  // OpenAI's, too
constexpr uint32_t kTopLogprobsMax = 20;
constexpr size_t kStopsMax = 16;
constexpr size_t kStopBytesMax = 1024;

struct RequestLimits {
  uint32_t vocab_size;
  uint32_t context_length;  ///< tokens
};

/// Reads the body of a request to `endpoint`. kInvalidArgument names the field in `param`: a wrong
/// type, a value out of range, a field given twice, one that is required and missing, or one whose
/// effect this engine does not have (penalties, response formats, ...). Null means absent.
/// Unknown fields must be JSON and are ignored. Pure. Cost: one pass over the body.
Result<ApiRequest> ParseRequest(Endpoint endpoint, std::string_view body,
                                const RequestLimits& limits);

}  // namespace hidane::serve
