#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "prompt/identity.h"

namespace hidane::prompt {

/// Which request form a body has.
enum class Api : uint8_t {
  kChat,         ///< /v1/chat/completions: tools, messages
  kCompletions,  ///< /v1/completions: prompt as string, strings, ids or lists of ids
  kResponses,    ///< /v1/responses: tools, instructions, input; also embeddings' `input`
  kMessages,     ///< /v1/messages (Anthropic): tools, system, messages
};

/// Which part the model's template puts first.
enum class PartOrder : uint8_t { kToolsFirst, kSystemFirst };

struct ReadOptions {
  uint64_t salt = 0;  ///< the tenant group's namespace; 0 where prompts may be shared by all
  PartOrder order = PartOrder::kToolsFirst;
};

/// Replace body[offset, offset + length) by `text` (static storage). length 0 inserts.
struct Splice {
  size_t offset = 0;
  size_t length = 0;
  std::string_view text;
};

/// What the gateway needs to know of a request body, found in one pass. Reuse it: its buffers
/// are kept.
struct Body {
  Identity identity;
  bool stream = false;
  bool include_usage = false;  ///< the client itself asked for the usage event
  /// For streams of kChat and kCompletions whose client did not ask: the edit that asks.
  std::optional<Splice> ask_usage;
  std::optional<uint32_t> max_tokens;  ///< max_completion_tokens, max_output_tokens, max_tokens
  uint32_t n = 1;                      ///< answers wanted
};

/// Reads request bodies: JSON text in, prompt identity out. Never walks a tool schema: its raw
/// bytes enter the stream, without the white space between tokens and with one spelling for
/// every escape. Equal prompts give equal identities however their JSON is spelled; sampling
/// parameters and the order of top-level fields don't matter.
///
/// One object per thread, reused; not thread-safe. Cost: one pass over the body and one over its
/// hashed text, no allocation once its buffers have grown to the largest body seen.
class BodyReader {
 public:
  /// Bytes behind a body that must be readable (their values don't matter) to avoid a copy.
  static constexpr size_t kPadding = 64;

  BodyReader();
  ~BodyReader();
  BodyReader(BodyReader&&) noexcept;
  BodyReader& operator=(BodyReader&&) noexcept;

  /// Fills `out` from `body`. `capacity` counts the readable bytes from body.data() on; below
  /// body.size() + kPadding the body is copied first. `out` holds no views into the body.
  ///
  /// kInvalidArgument, with the field in `param`: not a JSON object, `model` or the prompt's
  /// field missing, a known field twice or of the wrong type. Contents of tool schemas are
  /// not checked: the engine does.
  Status Read(Api api, std::string_view body, size_t capacity, const ReadOptions& options,
              Body& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hidane::prompt
