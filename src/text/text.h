#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace hidane::text {

/// What a model file says about its vocabulary; text/ never reads files. Spans must outlive Load.
struct VocabSource {
  std::string model;                      ///< tokenizer.ggml.model: "gpt2"
  std::string pre;                        ///< tokenizer.ggml.pre: "smollm"
  std::vector<std::string_view> tokens;   ///< id -> text (byte-level alphabet)
  std::vector<int32_t> token_types;       ///< GGUF: 1 normal, 3 control, 4 user defined, 6 byte
  std::vector<std::string_view> merges;   ///< "left right", by rank
  int32_t bos = -1, eos = -1, unk = -1, pad = -1;
  bool add_bos = false;
  std::string chat_template;              ///< Jinja; empty = plain ChatML is not assumed
};

/// Tokenizer and chat template of one model. Thread-safe after Load.
class TextModel {
 public:
  static Result<std::unique_ptr<TextModel>> Load(const VocabSource& source);
  virtual ~TextModel() = default;

  /// `parse_special` false: text like "<|im_end|>" is ordinary text, never a control token.
  virtual Result<std::vector<TokenId>> Encode(std::string_view text, bool parse_special) const = 0;
  /// Bytes of a token as the model means them (not necessarily whole UTF-8). Empty for control
  /// tokens. REQUIRES: 0 <= id < vocab_size().
  virtual std::string_view TokenBytes(TokenId id) const = 0;
  virtual bool IsEndOfGeneration(TokenId id) const = 0;  ///< eos and the template's turn end
  virtual uint32_t vocab_size() const = 0;
  virtual TokenId bos() const = 0;  ///< -1 if none is added

  /// Renders and tokenizes a chat. `messages_json` and `tools_json` (may be empty) are the raw JSON
  /// arrays of the request. Control tokens come from the template alone: special-token text inside
  /// any message field becomes ordinary tokens. When the template has no tools branch the tools are
  /// put into the system message in the form of docs/tools.md, never dropped.
  virtual Result<std::vector<TokenId>> EncodeChat(std::string_view messages_json,
                                                  std::string_view tools_json,
                                                  bool add_generation_prompt) const = 0;
  /// The rendered text of the same, for /tokenize, tests and explain.
  virtual Result<std::string> RenderChat(std::string_view messages_json,
                                         std::string_view tools_json,
                                         bool add_generation_prompt) const = 0;
};

/// Turns a stream of token bytes into text that is whole UTF-8 at every step: bytes of an
/// unfinished code point wait for the next token; bytes that can never become one turn into U+FFFD.
class Utf8Stream {
 public:
  std::string Push(std::string_view bytes);  ///< what can be shown now
  std::string Flush();                       ///< the rest, at the end

 private:
  std::string pending_;
};

}  // namespace hidane::text
