#pragma once
#include <string>
#include <string_view>

namespace hidane::text {

/// The bytes that a token text in the byte-level alphabet stands for. In that alphabet each byte is
/// one printable character: itself where it is printable in Latin-1, else a letter from U+0100 on,
/// in byte order (so a space is U+0120). Characters outside it stand for their own UTF-8 bytes.
///
/// Source: the GPT-2 tokenizer's byte encoder.
std::string BytesOfTokenText(std::string_view token_text);

/// The inverse: any bytes, written in the alphabet. For vocabularies made by hand.
std::string TokenTextOfBytes(std::string_view bytes);

}  // namespace hidane::text
