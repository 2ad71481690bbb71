#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

namespace hidane::prompt {

/// Readable bytes that CopyValue needs behind its input, writable ones behind its output.
inline constexpr size_t kCanonicalPadding = 64;

struct Copied {
  size_t read = 0;  ///< bytes of the value in the text; 0 when it has no end there
  size_t written = 0;
};

/// Copies the JSON value that starts at json[0] in its canonical form: no white space between
/// tokens, and one spelling for every escape (UTF-8 itself where JSON allows it, else the short
/// escape, else \u00xx in lower case). Number spellings and key order stay. Never writes more than
/// it read.
///
/// Of the value only its end is judged: quotes that close, as many closing brackets as opening
/// ones, no control character inside a string. Everything else is copied as it is.
///
/// REQUIRES: json readable to size + kCanonicalPadding, out writable as far, no overlap.
/// Cost: one pass, 64 bytes a step, by runtime-dispatched SIMD.
/// Source: the quote mask by prefix xor is Langdale and Lemire, "Parsing Gigabytes of JSON per
/// Second" (2019), section 3.1.
Copied CopyValue(const char* json, size_t size, char* out);

/// Canonical text that grows at its end. Keeps its memory over Clear.
class CanonicalBuffer {
 public:
  /// Appends the value that `json` begins with; returns the bytes it has there, 0 for none.
  /// REQUIRES: json readable to json.size() + kCanonicalPadding.
  size_t AppendValue(std::string_view json);
  void AppendRaw(std::string_view bytes);
  void AppendRaw(char byte) { AppendRaw(std::string_view(&byte, 1)); }

  void Clear() { size_ = 0; }
  void Truncate(size_t size) { size_ = size; }
  size_t size() const { return size_; }
  std::string_view view(size_t from = 0) const {
    return std::string_view(bytes_.data(), size_).substr(from);
  }

 private:
  char* Room(size_t more);

  std::vector<char> bytes_;
  size_t size_ = 0;
};

}  // namespace hidane::prompt
