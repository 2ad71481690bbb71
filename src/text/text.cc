#include "text/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "text/byte_alphabet.h"
#include "text/hidane_text.h"

namespace hidane::text {
namespace {

constexpr int32_t kControl = 3;      // GGUF token types
constexpr int32_t kUserDefined = 4;  // its text is plain, not in the byte-level alphabet

// How the common chat formats end a turn; a file's eos is not always that token.
constexpr std::array<std::string_view, 6> kTurnEnds = {
    "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "<end_of_turn>", "<|end|>"};

hidane_text_str Borrow(std::string_view s) {
  return {s.data(), s.size()};
}
std::string_view View(hidane_text_str s) {
  return {s.data, s.size};
}

std::vector<hidane_text_str> Borrow(const std::vector<std::string_view>& views) {
  std::vector<hidane_text_str> out;
  out.reserve(views.size());
  for (const std::string_view v : views) out.push_back(Borrow(v));
  return out;
}

/// Receives what one call of the library says.
struct Answer {
  std::vector<TokenId> ids;
  std::string text;
  std::string message, param;

  hidane_text_out Out() {
    return {.context = this, .ids = OnIds, .text = OnText, .error = OnError};
  }

  Error ToError(int status) {
    Code code = Code::kInternal;
    if (status == HIDANE_TEXT_INVALID_ARGUMENT) code = Code::kInvalidArgument;
    if (status == HIDANE_TEXT_LIMIT) code = Code::kTooLarge;
    return {code, std::move(message), std::move(param)};
  }

 private:
  static void OnIds(void* self, const int32_t* data, size_t n) noexcept {
    static_cast<Answer*>(self)->ids.assign(data, data + n);
  }
  static void OnText(void* self, hidane_text_str rendered) noexcept {
    static_cast<Answer*>(self)->text = View(rendered);
  }
  static void OnError(void* self, hidane_text_str what, hidane_text_str where) noexcept {
    static_cast<Answer*>(self)->message = View(what);
    static_cast<Answer*>(self)->param = View(where);
  }
};

struct Free {
  void operator()(hidane_text_model* model) const { hidane_text_free(model); }
};
using Handle = std::unique_ptr<hidane_text_model, Free>;

class Model final : public TextModel {
 public:
  Model(Handle handle, const VocabSource& source, UnixSeconds now)
      : handle_(std::move(handle)), bos_(source.add_bos ? source.bos : -1), now_(now) {
    bytes_.reserve(source.tokens.size());
    for (size_t id = 0; id < source.tokens.size(); ++id) {
      const std::string_view token = source.tokens[id];
      const int32_t type = source.token_types[id];
      if (type == kControl && std::ranges::find(kTurnEnds, token) != kTurnEnds.end()) {
        ends_.push_back(static_cast<TokenId>(id));
      }
      if (type == kControl) {
        bytes_.emplace_back();
      } else {
        bytes_.push_back(type == kUserDefined ? std::string(token) : BytesOfTokenText(token));
      }
    }
    if (source.eos >= 0) ends_.push_back(source.eos);
  }

  Result<std::vector<TokenId>> Encode(std::string_view text, bool parse_special) const override {
    Answer answer;
    const hidane_text_out out = answer.Out();
    const int status = hidane_text_encode(handle_.get(), Borrow(text), parse_special, &out);
    if (status != HIDANE_TEXT_OK) return Fail(answer.ToError(status));
    return std::move(answer.ids);
  }

  Result<std::vector<TokenId>> EncodeChat(std::string_view messages_json,
                                          std::string_view tools_json,
                                          bool add_generation_prompt) const override {
    Answer answer;
    const hidane_text_out out = answer.Out();
    const hidane_text_chat chat = Chat(messages_json, tools_json, add_generation_prompt);
    const int status = hidane_text_encode_chat(handle_.get(), &chat, &out);
    if (status != HIDANE_TEXT_OK) return Fail(answer.ToError(status));
    return std::move(answer.ids);
  }

  Result<std::string> RenderChat(std::string_view messages_json, std::string_view tools_json,
                                 bool add_generation_prompt) const override {
    Answer answer;
    const hidane_text_out out = answer.Out();
    const hidane_text_chat chat = Chat(messages_json, tools_json, add_generation_prompt);
    const int status = hidane_text_render_chat(handle_.get(), &chat, &out);
    if (status != HIDANE_TEXT_OK) return Fail(answer.ToError(status));
    return std::move(answer.text);
  }

  std::string_view TokenBytes(TokenId id) const override { return bytes_[id]; }
  bool IsEndOfGeneration(TokenId id) const override {
    return std::ranges::find(ends_, id) != ends_.end();
  }
  uint32_t vocab_size() const override { return static_cast<uint32_t>(bytes_.size()); }
  TokenId bos() const override { return bos_; }

 private:
  hidane_text_chat Chat(std::string_view messages, std::string_view tools, bool prompt) const {
    return {.messages = Borrow(messages),
            .tools = Borrow(tools),
            .add_generation_prompt = prompt,
            .now_unix_s = now_()};
  }

  Handle handle_;
  std::vector<std::string> bytes_;  // by token id
  std::vector<TokenId> ends_;
  TokenId bos_;
  UnixSeconds now_;
};

Status Check(const VocabSource& source) {
  const auto n = static_cast<int64_t>(source.tokens.size());
  if (source.model != "gpt2") {
    return Fail(Code::kInvalidArgument,
                fmt::format("tokenizer model \"{}\" is not supported (only gpt2)", source.model));
  }
  if (n == 0) return Fail(Code::kInvalidArgument, "the vocabulary is empty");
  if (source.token_types.size() != source.tokens.size()) {
    return Fail(Code::kInvalidArgument,
                fmt::format("{} token types for {} tokens", source.token_types.size(), n));
  }
  for (const auto& [name, id] : {std::pair{"bos", source.bos}, std::pair{"eos", source.eos},
                                 std::pair{"unk", source.unk}, std::pair{"pad", source.pad}}) {
    if (id >= n) {
      return Fail(Code::kInvalidArgument,
                  fmt::format("{} token {} is not in the vocabulary of {}", name, id, n));
    }
  }
  return {};
}

}  // namespace

int64_t SystemUnixSeconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

Result<std::unique_ptr<TextModel>> TextModel::Load(const VocabSource& source, UnixSeconds now) {
  HIDANE_CHECK_OK(Check(source));
  const auto text_of = [&](int32_t id) { return id < 0 ? std::string_view() : source.tokens[id]; };
  const auto tokens = Borrow(source.tokens);
  const auto merges = Borrow(source.merges);
  const hidane_text_vocab vocab = {.pre = Borrow(source.pre),
                                   .tokens = tokens.data(),
                                   .token_types = source.token_types.data(),
                                   .n_tokens = tokens.size(),
                                   .merges = merges.data(),
                                   .n_merges = merges.size(),
                                   .chat_template = Borrow(source.chat_template),
                                   .bos = Borrow(text_of(source.bos)),
                                   .eos = Borrow(text_of(source.eos))};
  Answer answer;
  const hidane_text_out out = answer.Out();
  Handle handle(hidane_text_new(&vocab, &out));
  if (!handle) return Fail(Code::kInvalidArgument, std::move(answer.message));
  return std::make_unique<Model>(std::move(handle), source, now);
}

}  // namespace hidane::text
