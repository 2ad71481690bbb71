#include "text/utf8_stream.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace hidane::text {
namespace {

std::string Whole(std::string_view bytes) {
  Utf8Stream stream;
  std::string text = stream.Push(bytes);
  return text += stream.Flush();
}

TEST(Utf8Stream, HoldsBackAnUnfinishedCodePointUntilItIsWhole) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Push("a\xF0\x9F"), "a");
  EXPECT_EQ(stream.Push("\x94"), "");
  EXPECT_EQ(stream.Push("\xA5z"), "\xF0\x9F\x94\xA5z");
  EXPECT_EQ(stream.Flush(), "");
}

TEST(Utf8Stream, FlushSaysThatACodePointWasCutOnce) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Push("\xF0\x9F\x94"), "");
  EXPECT_EQ(stream.Flush(), "\uFFFD");
  EXPECT_EQ(stream.Flush(), "");
}

// Each row: bytes and their text, as `bytes.decode("utf-8", "replace")` gives it in Python.
TEST(Utf8Stream, ReplacesMaximalSubparts) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"plain", "plain"},
      {"\x80", "\uFFFD"},                                // a continuation byte alone
      {"\xC0\x80", "\uFFFD\uFFFD"},                      // overlong: C0 never starts
      {"\xE0\x80\x80", "\uFFFD\uFFFD\uFFFD"},            // overlong in three
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},            // a surrogate
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // past U+10FFFF
      {"\xF0\x9F\x94x", "\uFFFDx"},                      // cut short, then ASCII
      {"\xE2\x82\xE2\x82\xAC", "\uFFFD\u20AC"},          // cut short, then a whole one
      {"\xFF\xFE", "\uFFFD\uFFFD"},
  };
  for (const auto& [bytes, text] : rows) EXPECT_EQ(Whole(bytes), text);
}

// Bytes that make interesting sequences likely.
rc::Gen<std::string> Bytes() {
  return rc::gen::container<std::string>(
      rc::gen::map(rc::gen::elementOf(std::string("a\x80\x9F\xA0\xBF\xC2\xE0\xE2\xED\xF0\xF4\xFF")),
                   [](char c) { return c; }));
}

RC_GTEST_PROP(Utf8StreamProps, CutsDoNotMatter, ()) {
  const std::string bytes = *Bytes();
  const auto cuts = *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, 4));
  Utf8Stream stream;
  std::string text;
  std::string_view rest = bytes;
  for (const size_t cut : cuts) {
    const auto piece = rest.substr(0, cut);
    text += stream.Push(piece);
    RC_ASSERT(text == Whole(text));  // well-formed at every step
    rest.remove_prefix(piece.size());
  }
  text += stream.Push(rest);
  text += stream.Flush();
  RC_ASSERT(text == Whole(bytes));
}

RC_GTEST_PROP(Utf8StreamProps, WellFormedTextPassesUnchanged,
              (const std::vector<uint16_t>& units)) {
  std::string text;
  for (const uint16_t u : units) {  // any code point of the first plane but the surrogates
    const uint32_t c = u >= 0xD800 && u < 0xE000 ? u + 0x2000u : u;
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    } else {
      text += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
               static_cast<char>(0x80 | (c & 0x3F))};
    }
  }
  RC_ASSERT(Whole(text) == text);
}

}  // namespace
}  // namespace hidane::text
