#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "text/utf8_stream.h"

namespace hidane::text {

/// What a model file says about its vocabulary; text/ never reads files. The views need to live
/// only as long as the call of Load.
struct VocabSource {
  std::string model;                     ///< tokenizer.ggml.model: "gpt2"
  std::string pre;                       ///< tokenizer.ggml.pre: smollm, gpt-2, llama-bpe, qwen2
  std::vector<std::string_view> tokens;  ///< id -> text (byte-level alphabet)
  std::vector<int32_t> token_types;      ///< GGUF: 1 normal, 3 control, 4 user defined, 6 byte
  std::vector<std::string_view> merges;  ///< "left right", by rank
  int32_t bos = -1, eos = -1, unk = -1, pad = -1;
  bool add_bos = false;
  std::string chat_template;  ///< Jinja; empty = chats are refused, no form is assumed
};

/// Seconds since 1970 in UTC, for templates that print the date.
using UnixSeconds = int64_t (*)();
int64_t SystemUnixSeconds();

/// Tokenizer and chat template of one model. Immutable after Load, so any thread may call it.
class TextModel {
 public:
  /// kInvalidArgument names what is wrong in `source`: an unknown tokenizer or pre-tokenizer,
  /// sizes that disagree, an id out of range, a merge of unknown tokens, a broken template.
  static Result<std::unique_ptr<TextModel>> Load(const VocabSource& source,
                                                 UnixSeconds now = SystemUnixSeconds);
  virtual ~TextModel() = default;

  /// `parse_special` false: text like "<|im_end|>" is ordinary text, never a control token.
  /// Ill-formed UTF-8 reads as U+FFFD. Adds no bos. Cost: about 1 us a token.
  virtual Result<std::vector<TokenId>> Encode(std::string_view text, bool parse_special) const = 0;
  /// Bytes of a token as the model means them (not necessarily whole UTF-8). Empty for control
  /// tokens. REQUIRES: 0 <= id < vocab_size().
  virtual std::string_view TokenBytes(TokenId id) const = 0;
  /// eos, and the control tokens by which known chat formats end a turn.
  virtual bool IsEndOfGeneration(TokenId id) const = 0;
  virtual uint32_t vocab_size() const = 0;
  virtual TokenId bos() const = 0;  ///< to be put before a plain prompt; -1 if none is added

  /// Renders and tokenizes a chat. `messages_json` and `tools_json` (may be empty) are the raw JSON
  /// arrays of the request. Control tokens come from the template alone: special-token text inside
  /// any message field or tool becomes ordinary tokens. When the template has no tools branch the
  /// tools are put into the system message in the form of docs/tools.md, never dropped.
  /// kInvalidArgument: the field at fault in `param`; kTooLarge: the template ran past its
  /// bound of steps or output (200,000 steps + 2,000 a message or tool; 64 KiB + 10 x the input).
  virtual Result<std::vector<TokenId>> EncodeChat(std::string_view messages_json,
                                                  std::string_view tools_json,
                                                  bool add_generation_prompt) const = 0;
  /// The rendered text of the same, for /tokenize, tests and explain.
  virtual Result<std::string> RenderChat(std::string_view messages_json,
                                         std::string_view tools_json,
                                         bool add_generation_prompt) const = 0;
};

}  // namespace hidane::text
