#include "text/utf8_stream.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace hidane::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// The well-formed sequences that start with `lead`: their length (0: none) and the range of the
/// second byte, by which overlong forms, surrogates and code points past U+10FFFF are refused.
struct Form {
  size_t length;
  uint8_t second_min = 0x80, second_max = 0xBF;
};

Form FormOf(uint8_t lead) {
  if (lead < 0x80) return {1};
  if (lead < 0xC2) return {0};
  if (lead < 0xE0) return {2};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

/// Length of the longest prefix of `bytes` that begins a well-formed sequence; 0 if none does.
size_t MatchLength(std::string_view bytes, Form form) {
  if (form.length == 0) return 0;
  size_t n = 1;
  while (n < std::min(form.length, bytes.size())) {
    const auto byte = static_cast<uint8_t>(bytes[n]);
    const uint8_t min = n == 1 ? form.second_min : 0x80;
    const uint8_t max = n == 1 ? form.second_max : 0xBF;
    if (byte < min || byte > max) break;
    ++n;
  }
  return n;
}

}  // namespace

std::string Utf8Stream::Push(std::string_view bytes) {
  const std::string joined = std::exchange(pending_, {}).append(bytes);
  std::string_view rest = joined;
  std::string out;
  while (!rest.empty()) {
    const Form form = FormOf(static_cast<uint8_t>(rest.front()));
    const size_t n = MatchLength(rest, form);
    if (n == form.length && n > 0) {
      out.append(rest.substr(0, n));
    } else if (n == rest.size()) {
      pending_ = rest;
      break;
    } else {
      out.append(kReplacement);
    }
    rest.remove_prefix(std::max<size_t>(n, 1));
  }
  return out;
}

std::string Utf8Stream::Flush() {
  return std::exchange(pending_, {}).empty() ? std::string() : std::string(kReplacement);
}

}  // namespace hidane::text
