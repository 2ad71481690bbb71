#pragma once
#include <string>
#include <string_view>

namespace hidane::text {

/// Turns a stream of bytes into text that is whole UTF-8 at every step: the bytes of an unfinished
/// code point wait for the rest; a maximal run of bytes that can't become one turns into U+FFFD.
/// The concatenated output does not depend on how the bytes were cut.
///
/// Source: Unicode 15, section 3.9, "U+FFFD substitution of maximal subparts".
class Utf8Stream {
 public:
  std::string Push(std::string_view bytes);  ///< what can be shown now
  std::string Flush();                       ///< U+FFFD if a code point was left unfinished

 private:
  std::string pending_;  // < 4 bytes: a code point that may still become whole
};

}  // namespace hidane::text
