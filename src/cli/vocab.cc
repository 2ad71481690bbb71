#include "cli/vocab.h"

namespace hidane::cli {

Result<text::VocabSource> VocabOf(const model::Gguf& gguf) {
  using model::OrDefault;
  text::VocabSource source;
  HIDANE_TRY(source.model, gguf.String("tokenizer.ggml.model"));
  HIDANE_TRY(source.pre, OrDefault(gguf.String("tokenizer.ggml.pre"), "default"));
  HIDANE_TRY(source.tokens, gguf.Strings("tokenizer.ggml.tokens"));
  HIDANE_TRY(source.token_types, gguf.Int32s("tokenizer.ggml.token_type"));
  HIDANE_TRY(source.merges, gguf.Strings("tokenizer.ggml.merges"));
  HIDANE_TRY(const int64_t bos, OrDefault(gguf.Int("tokenizer.ggml.bos_token_id"), -1));
  HIDANE_TRY(const int64_t eos, OrDefault(gguf.Int("tokenizer.ggml.eos_token_id"), -1));
  HIDANE_TRY(const int64_t unk, OrDefault(gguf.Int("tokenizer.ggml.unknown_token_id"), -1));
  HIDANE_TRY(const int64_t pad, OrDefault(gguf.Int("tokenizer.ggml.padding_token_id"), -1));
  source.bos = static_cast<int32_t>(bos);
  source.eos = static_cast<int32_t>(eos);
  source.unk = static_cast<int32_t>(unk);
  source.pad = static_cast<int32_t>(pad);
  HIDANE_TRY(source.add_bos, OrDefault(gguf.Bool("tokenizer.ggml.add_bos_token"), false));
  HIDANE_TRY(source.chat_template, OrDefault(gguf.String("tokenizer.chat_template"), ""));
  return source;
}

}  // namespace hidane::cli
