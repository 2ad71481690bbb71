/* The C side of the Rust library in rust/: tokenizer and chat template of one model.
 *
 * - A handle is made by hidane_text_new, freed by hidane_text_free, and may be used from any
 *   number of threads at once.
 * - Inputs are borrowed for the call. Results arrive through the callbacks of hidane_text_out
 *   before the call returns; what they point to is gone afterwards. No memory changes owner.
 * - A call returns a hidane_text_status; anything but OK also calls `error`. Panics inside are
 *   caught and become HIDANE_TEXT_INTERNAL: nothing unwinds into the caller.
 * - Strings are UTF-8; ill-formed bytes read as U+FFFD.
 */
#ifndef HIDANE_TEXT_H_
#define HIDANE_TEXT_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hidane_text_model hidane_text_model;

typedef struct {
  const char* data; /* may be NULL when size is 0 */
  size_t size;
} hidane_text_str;

typedef enum {
  HIDANE_TEXT_OK = 0,
  HIDANE_TEXT_INVALID_ARGUMENT = 1, /* the input is wrong; the message names the value */
  HIDANE_TEXT_LIMIT = 2,            /* a bound on steps or output of the template was reached */
  HIDANE_TEXT_INTERNAL = 3,
} hidane_text_status;

typedef struct {
  void* context; /* passed to every callback */
  void (*ids)(void* context, const int32_t* ids, size_t n);
  void (*text)(void* context, hidane_text_str text);
  /* `param`: the field of the request at fault, e.g. "messages[2].content"; may be empty. */
  void (*error)(void* context, hidane_text_str message, hidane_text_str param);
} hidane_text_out;

typedef struct {
  hidane_text_str pre;           /* "smollm", "gpt-2", "llama-bpe", "qwen2" */
  const hidane_text_str* tokens; /* [n_tokens], in the byte-level alphabet */
  const int32_t* token_types;    /* [n_tokens], as in GGUF: 3 control, 4 user defined */
  size_t n_tokens;
  const hidane_text_str* merges; /* [n_merges], "left right", best first */
  size_t n_merges;
  hidane_text_str chat_template; /* Jinja; empty = none */
  hidane_text_str bos, eos;      /* their texts, for the template */
} hidane_text_vocab;

/* NULL on error. Copies what it needs. */
hidane_text_model* hidane_text_new(const hidane_text_vocab* vocab, const hidane_text_out* out);
void hidane_text_free(hidane_text_model* model); /* NULL is fine */

/* -> ids. Control tokens are recognised only with parse_special != 0. */
int hidane_text_encode(const hidane_text_model* model, hidane_text_str text, int parse_special,
                       const hidane_text_out* out);

typedef struct {
  hidane_text_str messages; /* JSON array */
  hidane_text_str tools;    /* JSON array, or empty */
  int add_generation_prompt;
  int64_t now_unix_s; /* for the template's strftime_now, which prints UTC */
} hidane_text_chat;

/* -> ids / text of the rendered chat. Text of a control token inside a message or a tool never
 * becomes that token. */
int hidane_text_encode_chat(const hidane_text_model* model, const hidane_text_chat* chat,
                            const hidane_text_out* out);
int hidane_text_render_chat(const hidane_text_model* model, const hidane_text_chat* chat,
                            const hidane_text_out* out);

#ifdef __cplusplus
}
#endif
#endif /* HIDANE_TEXT_H_ */
