#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

namespace hidane::prompt {

/// Readable bytes that Canonicalise needs behind its input, writable ones behind its output.
inline constexpr size_t kCanonicalPadding = 64;

/// Writes the canonical form of JSON text: no white space between tokens, and one spelling for
/// every escape (UTF-8 itself where JSON allows it, else the short escape, else \u00xx in lower
/// case). Number spellings and key order stay. Returns the bytes written, never more than
/// `size`. Broken escapes are copied as they are: judging the text is not its business.
///
/// REQUIRES: json readable to size + kCanonicalPadding, out writable as far, no overlap.
/// Text starts outside a string. Cost: one pass, 64 bytes a step, by runtime-dispatched SIMD.
/// Source: the quote mask by prefix xor is Langdale and Lemire, "Parsing Gigabytes of JSON per
/// Second" (2019), section 3.1.
size_t Canonicalise(const char* json, size_t size, char* out);

/// Canonical text that grows at its end. Keeps its memory over Clear.
class CanonicalBuffer {
 public:
  /// REQUIRES: json readable to json.size() + kCanonicalPadding.
  void AppendJson(std::string_view json);
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
