#include "text/byte_alphabet.h"

#include <array>
#include <cstdint>

namespace hidane::text {
namespace {

constexpr int kLastLetter = 0x143;  // 68 bytes have no printable form of their own

constexpr bool StandsForItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

struct Alphabet {
  std::array<uint16_t, 256> letter{};           // byte -> code point
  std::array<int16_t, kLastLetter + 1> byte{};  // code point -> byte, -1 = not in the alphabet

  constexpr Alphabet() {
    byte.fill(-1);
    uint16_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      letter[b] = StandsForItself(b) ? static_cast<uint16_t>(b) : next++;
      byte[letter[b]] = static_cast<int16_t>(b);
    }
  }
};
constexpr Alphabet kAlphabet;

}  // namespace

std::string BytesOfTokenText(std::string_view token_text) {
  std::string out;
  for (size_t i = 0; i < token_text.size(); ++i) {
    const auto lead = static_cast<uint8_t>(token_text[i]);
    int code_point = lead;
    // Every letter is one or two bytes of UTF-8; anything longer is copied as it is.
    const bool two_bytes = (lead & 0xE0) == 0xC0 && i + 1 < token_text.size();
    if (two_bytes) code_point = (lead & 0x1F) << 6 | (token_text[i + 1] & 0x3F);
    const bool known =
        (lead < 0x80 || two_bytes) && code_point <= kLastLetter && kAlphabet.byte[code_point] >= 0;
    if (known) {
      out.push_back(static_cast<char>(kAlphabet.byte[code_point]));
      i += two_bytes ? 1 : 0;
    } else {
      out.push_back(token_text[i]);
    }
  }
  return out;
}

std::string TokenTextOfBytes(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const uint16_t letter = kAlphabet.letter[static_cast<uint8_t>(c)];
    if (letter < 0x80) {
      out.push_back(static_cast<char>(letter));
    } else {
      out.push_back(static_cast<char>(0xC0 | letter >> 6));
      out.push_back(static_cast<char>(0x80 | (letter & 0x3F)));
    }
  }
  return out;
}

}  // namespace hidane::text
