#include "prompt/canonical.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <string>

#include "base/json_out.h"

namespace hidane::prompt {
namespace {

std::string Canonical(const std::string& json) {
  std::string padded = json + std::string(kCanonicalPadding, '"');
  CanonicalBuffer buffer;
  buffer.AppendJson(std::string_view(padded).substr(0, json.size()));
  return std::string(buffer.view());
}

TEST(CanonicalTest, DropsWhiteSpaceBetweenTokensAndKeepsItInStrings) {
  EXPECT_EQ(Canonical("{ \"a b\" :\n\t[ 1 , \" \\\" , \" ] }  "), "{\"a b\":[1,\" \\\" , \"]}");
  EXPECT_EQ(Canonical(""), "");
  EXPECT_EQ(Canonical("   "), "");
}

TEST(CanonicalTest, GivesEveryEscapeOneSpelling) {
  EXPECT_EQ(Canonical(R"("\u3042\u00e9\u0041")"), "\"あéA\"");
  EXPECT_EQ(Canonical(R"("\ud83d\uDE00")"), "\"😀\"");
  EXPECT_EQ(Canonical(R"("\/\u002f/")"), R"("///")");
  EXPECT_EQ(Canonical(R"("\u000A\u0022\u005C\u0008\u000c\u000d\u0009")"), R"("\n\"\\\b\f\r\t")");
  EXPECT_EQ(Canonical(R"("\u001F")"), R"("\u001f")");
  EXPECT_EQ(Canonical(R"("\\u0041")"), R"("\\u0041")") << "an escaped backslash, then text";
}

TEST(CanonicalTest, BrokenEscapesPassAsTheyAre) {
  for (const char* json : {R"("\uD800")", R"("\uD800A")", R"("\uDC00\uD800")"}) {
    std::string lower = json;
    for (char& c : lower) c = c == 'D' ? 'd' : c == 'C' ? 'c' : c;
    EXPECT_EQ(Canonical(json), lower);
  }
  for (const char* json : {R"("\u12G4")", R"("\u1)", R"("\)", R"("\q")", R"("\ud83d\u12)"}) {
    EXPECT_EQ(Canonical(json), json);
  }
}

// A scalar twin of the SIMD pass, for texts whose escapes have one spelling only.
std::string WithoutBlanks(const std::string& json) {
  std::string out;
  bool in_string = false;
  bool escaped = false;
  for (const char c : json) {
    if (in_string || static_cast<unsigned char>(c) > ' ') out += c;
    if (c == '"' && !escaped) in_string = !in_string;
    escaped = c == '\\' && !escaped;
  }
  return out;
}

RC_GTEST_PROP(CanonicalProperty, AgreesWithTheScalarTwinAtEveryLengthAndAlignment, ()) {
  const auto text = *rc::gen::container<std::string>(
      rc::gen::element(' ', ' ', '\n', '\t', '"', '\\', '\\', 'a', 'n', '{', ',', '\x7f', '\xe3'));
  const auto stretch = *rc::gen::inRange<size_t>(0, 130);
  const std::string json = std::string(stretch, 'x') + text + std::string(stretch / 2, ' ') + text;
  RC_ASSERT(Canonical(json) == WithoutBlanks(json));
}

RC_GTEST_PROP(CanonicalProperty, EverySpellingOfAStringHasOneForm, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
  const auto spell =
      *rc::gen::container<std::vector<bool>>(text.size(), rc::gen::arbitrary<bool>());
  std::string plain;
  AppendJsonString(plain, text);
  std::string spelled = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    std::string one;
    AppendJsonString(one, text.substr(i, 1));
    char hex[8];
    std::snprintf(hex, sizeof hex, "\\u%04X", text[i]);
    spelled += spell[i] ? hex : one.substr(1, one.size() - 2);
  }
  spelled += '"';
  RC_ASSERT(Canonical(spelled) == Canonical(plain));
}

}  // namespace
}  // namespace hidane::prompt
