#include "prompt/escape.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

namespace hidane::prompt {
namespace {

constexpr size_t kUnicodeEscape = 6;  // \uXXXX

std::optional<uint32_t> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::optional<uint32_t> ReadUnicodeEscape(const char* at, const char* end) {
  if (end - at < static_cast<ptrdiff_t>(kUnicodeEscape) || at[0] != '\\' || at[1] != 'u') {
    return std::nullopt;
  }
  uint32_t unit = 0;
  for (size_t i = 2; i < kUnicodeEscape; ++i) {
    const auto digit = HexDigit(at[i]);
    if (!digit) return std::nullopt;
    unit = unit << 4 | *digit;
  }
  return unit;
}

size_t WriteUtf8(uint32_t c, char* out) {
  if (c < 0x80) {
    out[0] = static_cast<char>(c);
    return 1;
  }
  const size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = length - 1; i > 0; --i, c >>= 6) out[i] = static_cast<char>(0x80 | (c & 0x3f));
  constexpr std::array<uint32_t, 5> kLead = {0, 0, 0xc0, 0xe0, 0xf0};
  out[0] = static_cast<char>(kLead[length] | c);
  return length;
}

size_t WriteUnicodeEscape(uint32_t unit, char* out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out[0] = '\\';
  out[1] = 'u';
  for (size_t i = 0; i < 4; ++i) out[2 + i] = kHex[unit >> (12 - 4 * i) & 0xf];
  return kUnicodeEscape;
}

// A character that came as \uXXXX, in the spelling it has everywhere else.
size_t WriteCharacter(uint32_t c, char* out) {
  constexpr std::string_view kPlain = "\"\\\b\f\n\r\t";
  constexpr std::string_view kShort = "\"\\bfnrt";
  if (const size_t i = c < 0x80 ? kPlain.find(static_cast<char>(c)) : kPlain.npos;
      i != kPlain.npos) {
    out[0] = '\\';
    out[1] = kShort[i];
    return 2;
  }
  return c < 0x20 ? WriteUnicodeEscape(c, out) : WriteUtf8(c, out);
}

bool IsHigh(uint32_t unit) {
  return unit >= 0xd800 && unit < 0xdc00;
}
bool IsLow(uint32_t unit) {
  return unit >= 0xdc00 && unit < 0xe000;
}

}  // namespace

EscapeRewrite RewriteEscape(const char* at, const char* end, char* out) {
  if (end - at >= 2 && at[1] == '/') {
    out[0] = '/';
    return {2, 1};
  }
  const auto unit = ReadUnicodeEscape(at, end);
  if (!unit) {
    const size_t n = std::min<size_t>(2, end - at);
    std::memcpy(out, at, n);
    return {n, n};
  }
  if (IsHigh(*unit)) {
    const auto low = ReadUnicodeEscape(at + kUnicodeEscape, end);
    if (low && IsLow(*low)) {
      const uint32_t c = 0x10000 + ((*unit - 0xd800) << 10) + (*low - 0xdc00);
      return {2 * kUnicodeEscape, WriteUtf8(c, out)};
    }
  }
  if (IsHigh(*unit) || IsLow(*unit)) return {kUnicodeEscape, WriteUnicodeEscape(*unit, out)};
  return {kUnicodeEscape, WriteCharacter(*unit, out)};
}

}  // namespace hidane::prompt
