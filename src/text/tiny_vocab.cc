#include "text/tiny_vocab.h"

#include <utility>

#include "text/byte_alphabet.h"

namespace hidane::text {

TinyVocab::TinyVocab() {
  source_.model = "gpt2";
  source_.pre = "smollm";
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    Add(TokenTextOfBytes({&c, 1}), 1);
  }
}

TokenId TinyVocab::AddMerge(std::string_view left, std::string_view right) {
  const std::string merge = TokenTextOfBytes(left) + ' ' + TokenTextOfBytes(right);
  source_.merges.push_back(strings_.emplace_back(merge));
  return Add(TokenTextOfBytes(left) + TokenTextOfBytes(right), 1);
}

TokenId TinyVocab::AddControl(std::string_view token) {
  return Add(std::string(token), 3);
}
TokenId TinyVocab::AddUserDefined(std::string_view token) {
  return Add(std::string(token), 4);
}

TokenId TinyVocab::Add(std::string token, int32_t type) {
  source_.tokens.push_back(strings_.emplace_back(std::move(token)));
  source_.token_types.push_back(type);
  return static_cast<TokenId>(source_.tokens.size() - 1);
}

TinyVocab TinyVocab::ChatMl() {
  TinyVocab v;
  v.AddMerge("h", "e");
  v.AddMerge("l", "l");
  v.AddMerge("he", "ll");
  v.AddMerge("hell", "o");
  v.AddMerge(" ", "hello");
  v.AddControl("<|endoftext|>");
  v.AddControl("<|im_start|>");
  v.source_.eos = v.AddControl("<|im_end|>");
  v.AddControl("<file_sep>");
  v.source_.chat_template =
      "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + "
      "'<|im_end|>' + '\\n' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
  return v;
}

}  // namespace hidane::text
