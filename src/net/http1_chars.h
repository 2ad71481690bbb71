#pragma once
#include <array>
#include <string_view>

namespace hidane::net {

/// Character classes of RFC 9110 and RFC 3986 as one table look-up.
enum CharClass : unsigned char { kTokenChar = 1, kValueChar = 2, kPathChar = 4, kHostChar = 8 };

inline constexpr auto kCharClasses = [] {
  std::array<unsigned char, 256> table{};
  for (int c = 0; c < 256; ++c) {
    const bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const auto in = [c](std::string_view set) {
      return c != 0 && c < 128 && set.find(static_cast<char>(c)) != std::string_view::npos;
    };
    unsigned char v = 0;
    if (alnum || in("!#$%&'*+-.^_`|~")) v |= kTokenChar;
    if (c == '\t' || (c >= ' ' && c != 0x7f)) v |= kValueChar;
    if (alnum || in("-._~!$&'()*+,=:@/%")) v |= kPathChar;  // `;` is left out on purpose
    if (alnum || in("-._:[]")) v |= kHostChar;
    table[static_cast<size_t>(c)] = v;
  }
  return table;
}();

constexpr bool Is(char c, CharClass k) {
  return (kCharClasses[static_cast<unsigned char>(c)] & k) != 0;
}

constexpr bool All(std::string_view s, CharClass k) {
  for (const char c : s) {
    if (!Is(c, k)) return false;
  }
  return true;
}

/// 0..15, or -1.
constexpr int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

}  // namespace hidane::net
