#include "prompt/canonical.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <rapidcheck/gtest.h>
#include <string>

#include "base/json_out.h"

namespace hidane::prompt {
namespace {

struct Copy {
  size_t read = 0;
  std::string text;
  bool operator==(const Copy&) const = default;
};

Copy CopyOf(const std::string& json) {
  std::string padded = json + std::string(kCanonicalPadding, '"');
  CanonicalBuffer buffer;
  const size_t read = buffer.AppendValue(std::string_view(padded).substr(0, json.size()));
  return {read, std::string(buffer.view())};
}

std::string Canonical(const std::string& json) {
  return CopyOf(json).text;
}

TEST(CanonicalTest, DropsWhiteSpaceBetweenTokensAndKeepsItInStrings) {
  EXPECT_EQ(Canonical("{ \"a b\" :\n\t[ 1 , \" \\\" , \" ] }  "), "{\"a b\":[1,\" \\\" , \"]}");
}

TEST(CanonicalTest, ReadsOneValueAndNoMore) {
  EXPECT_EQ(CopyOf(R"("a]b", 1)"), (Copy{5, R"("a]b")"}));
  EXPECT_EQ(CopyOf(R"([ "]", {} ] ])"), (Copy{11, R"(["]",{}])"}));
  EXPECT_EQ(CopyOf("-1.5e3,"), (Copy{6, "-1.5e3"}));
  EXPECT_EQ(CopyOf("true}"), (Copy{4, "true"}));
}

TEST(CanonicalTest, AValueWithoutAnEndIsNone) {
  for (const char* json : {"", "[", "[[]", "{\"a\":\"}\"", "\"", R"("\")", "]", ",", ":", " 1"})
    EXPECT_EQ(CopyOf(json), Copy()) << json;
}

TEST(CanonicalTest, AControlCharacterInAStringEndsEverything) {
  EXPECT_EQ(CopyOf("\"a\x1f\"").read, 0u);
  EXPECT_EQ(CopyOf("[\"" + std::string(200, 'a') + "\n\"]").read, 0u);
  EXPECT_EQ(CopyOf("[\"a\"]\n\"\n\"").read, 5u) << "what is behind the value is not judged";
}

TEST(CanonicalTest, GivesEveryEscapeOneSpelling) {
  EXPECT_EQ(Canonical(R"("\u3042\u00e9\u0041")"), "\"あéA\"");
  EXPECT_EQ(Canonical(R"("\ud83d\uDE00")"), "\"😀\"");
  EXPECT_EQ(Canonical(R"("\/\u002f/")"), R"("///")");
  EXPECT_EQ(Canonical(R"("\u000A\u0022\u005C\u0008\u000c\u000d\u0009")"), R"("\n\"\\\b\f\r\t")");
  EXPECT_EQ(Canonical(R"("\u001F")"), R"("\u001f")");
  EXPECT_EQ(Canonical(R"("\\u0041")"), R"("\\u0041")") << "an escaped backslash, then text";
}

TEST(CanonicalTest, WhiteSpaceAndEscapesMayStandClose) {
  EXPECT_EQ(Canonical(R"([ "\u00e9\/" , "\u0041 b" ,  1 ])"), R"(["é/","A b",1])");
  EXPECT_EQ(Canonical(R"({ "\/" : [ ] , "a":"\/" })"), R"({"/":[],"a":"/"})");
}

TEST(CanonicalTest, BrokenEscapesPassAsTheyAre) {
  for (const char* json : {R"("\uD800")", R"("\uD800A")", R"("\uDC00\uD800")"}) {
    std::string lower = json;
    for (char& c : lower) c = c == 'D' ? 'd' : c == 'C' ? 'c' : c;
    EXPECT_EQ(Canonical(json), lower);
  }
  for (const char* json : {R"("\u12G4")", R"("\u1")", R"("\q")", R"("\ud83d\u12")"}) {
    EXPECT_EQ(Canonical(json), json);
  }
}

// A scalar twin of the SIMD pass, for strings and brackets whose escapes have one spelling only.
Copy ScalarTwin(const std::string& json) {
  Copy copy;
  bool in_string = false;
  bool escaped = false;
  int depth = 0;
  for (const char c : json) {
    ++copy.read;
    if (in_string && static_cast<unsigned char>(c) < ' ') return {};
    if (in_string || static_cast<unsigned char>(c) > ' ') copy.text += c;
    if (c == '"' && !escaped) in_string = !in_string;
    escaped = c == '\\' && !escaped;
    if (!in_string) depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (!in_string && depth == 0) return copy;
  }
  return {};
}

RC_GTEST_PROP(CanonicalProperty, AgreesWithTheScalarTwinAtEveryLengthAndAlignment, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::element(
      ' ', ' ', '\n', '"', '\\', '\\', 'a', 'n', '{', '[', ']', '}', ',', '\x7f', '\xe3'));
  const auto stretch = *rc::gen::inRange<size_t>(0, 130);
  const auto first = *rc::gen::element('"', '[', '{');
  const std::string ends = *rc::gen::element<std::string>("\"]", "]", "]]\"]]", "");
  const std::string json =
      first + std::string(stretch, 'x') + text + std::string(stretch / 2, ' ') + text + ends + text;
  RC_ASSERT(CopyOf(json) == ScalarTwin(json));
}

RC_GTEST_PROP(CanonicalProperty, EveryInstructionSetGivesTheSameText, ()) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      " ", "\n", "1, 2", "[]", R"({ "key" : "some words" , "other" : [ 1, 2 , 3 ], "a" :"b" } )",
      R"("a b\/\u0041 ")", R"("\"")"));
  std::string json = "[";
  for (const std::string& piece : pieces) json += piece;
  json += "]";
  const Copy expected = CopyOf(json);
  for (int64_t sets = hwy::SupportedTargets(); sets != 0; sets &= sets - 1) {
    hwy::SetSupportedTargetsForTest(sets & -sets);
    hwy::GetChosenTarget().DeInit();
    const Copy copy = CopyOf(json);
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
    RC_ASSERT(copy == expected);
  }
}

// The same text twice, its letters once plain and once escaped.
RC_GTEST_PROP(CanonicalProperty, EscapesAndWhiteSpaceInAnyMixtureHaveOneForm, ()) {
  const auto pieces = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 5));
  std::string plain = "[";
  std::string spelled = "[ ";
  for (const int piece : pieces) {
    constexpr const char* kPlain[] = {R"("a",)", "1,", R"("x / y",)", "[{}],", R"("あ",)"};
    constexpr const char* kSpelled[] = {R"("\u0061" ,)", "\n1 ,", R"("x \/ y", )", "[ {\t} ] ,",
                                        R"("\u3042",)"};
    plain += kPlain[piece];
    spelled += kSpelled[piece];
  }
  RC_ASSERT(Canonical(spelled + " 0 ]") == plain + "0]");
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
