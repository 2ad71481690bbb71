#pragma once
#include <deque>
#include <string>
#include <string_view>

#include "text/text.h"

namespace hidane::text {

/// A vocabulary made by hand, for tests and fakes: the ids 0..255 are the bytes, the rest is what
/// was added, in order.
class TinyVocab {
 public:
  TinyVocab();
  TinyVocab(TinyVocab&&) = default;  // the source's views stay valid
  TinyVocab& operator=(TinyVocab&&) = default;
  TokenId AddMerge(std::string_view left, std::string_view right);  ///< plain bytes, not letters
  TokenId AddControl(std::string_view token);
  TokenId AddUserDefined(std::string_view token);

  VocabSource& source() { return source_; }

  /// Bytes, the words of " hello", and `<|endoftext|>`, `<|im_start|>`, `<|im_end|>`, `<file_sep>`
  /// as control tokens, with the plain ChatML template.
  static TinyVocab ChatMl();

 private:
  TokenId Add(std::string token, int32_t type);

  std::deque<std::string> strings_;  // what source_ points to
  VocabSource source_;
};

}  // namespace hidane::text
