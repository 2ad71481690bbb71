#include "prompt/json_cursor.h"

#include <gtest/gtest.h>

#include <string>

namespace hidane::prompt {
namespace {

/// A cursor on a text with the padding that it needs.
struct Text {
  explicit Text(std::string json)
      : bytes(std::move(json)), at(std::string_view((bytes += Padding())).substr(0, Size())) {}
  static std::string Padding() { return std::string(kCanonicalPadding, '"'); }
  size_t Size() const { return bytes.size() - kCanonicalPadding; }
  std::string bytes;
  JsonCursor at;
};

TEST(JsonCursorTest, WalksMembersAndItems) {
  Text text(R"( { "a" : [ 1 , "x" ] , "b":{ } } )");
  CanonicalBuffer keys;
  CanonicalBuffer values;
  for (bool more = text.at.Enter('{'); more; more = text.at.Next('}')) {
    text.at.CopyKey(keys);
    text.at.Copy(values);
  }
  EXPECT_TRUE(text.at.status());
  EXPECT_TRUE(text.at.AtEnd());
  EXPECT_EQ(keys.view(), R"("a""b")");
  EXPECT_EQ(values.view(), R"([1,"x"]{})");
}

TEST(JsonCursorTest, PeekStandsOnTheToken) {
  Text text("  [ null ]");
  EXPECT_EQ(text.at.Peek(), '[');
  EXPECT_EQ(text.at.offset(), 2u);
  JsonCursor ahead = text.at;
  EXPECT_TRUE(ahead.Enter('['));
  EXPECT_TRUE(ahead.PeekNull());
  EXPECT_EQ(text.at.offset(), 2u) << "a copy looks ahead";
}

struct Broken {
  const char* json;
  const char* what;
};

TEST(JsonCursorTest, AFaultNamesTheByteAndEndsEveryLoop) {
  for (const Broken& broken :
       {Broken{"[]", "another kind of value at byte 0"},
        Broken{R"({"a":1)", "no comma and no closing bracket at byte 6"},
        Broken{R"({"a":1 "b":2})", "no comma and no closing bracket at byte 7"},
        Broken{R"({"a":1,})", "no key at byte 7"}, Broken{R"({"a" 1})", "no colon at byte 5"},
        Broken{R"({"a":})", "no whole value at byte 5"},
        Broken{R"({"a":[1)", "no whole value at byte 5"}}) {
    Text text(broken.json);
    CanonicalBuffer out;
    for (bool more = text.at.Enter('{'); more; more = text.at.Next('}')) {
      text.at.CopyKey(out);
      text.at.Copy(out);
    }
    const Status status = text.at.status();
    ASSERT_FALSE(status) << broken.json;
    EXPECT_EQ(status.error().what, std::string("body is not a JSON object: ") + broken.what);
    EXPECT_FALSE(text.at.AtEnd());
    EXPECT_EQ(text.at.Peek(), 0);
    const size_t before = out.size();
    text.at.Copy(out);
    EXPECT_EQ(out.size(), before);
  }
}

}  // namespace
}  // namespace hidane::prompt
