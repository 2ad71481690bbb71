#include "net/sse.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace hidane::net {
namespace {

struct Event {
  std::string type, data, raw;
  bool operator==(const Event&) const = default;
};

template <class Next>
std::vector<Event> Split(std::string_view text, Next next, std::string* pending = nullptr) {
  SseSplitter splitter;
  std::vector<Event> out;
  while (!text.empty()) {
    const std::string piece(text.substr(0, next()));  // gone after its turn, as a socket's buffer
    text.remove_prefix(piece.size());
    splitter.Feed(piece);
    while (const auto e = splitter.Next()) {
      out.push_back({std::string(e->type), std::string(e->data), std::string(e->raw)});
    }
  }
  if (pending != nullptr) *pending = splitter.pending();
  return out;
}
std::vector<Event> Split(std::string_view text) {
  return Split(text, [] { return size_t{1} << 30; });
}

TEST(SseTest, SplitsAsTheStandardSays) {
  const auto events = Split(
      "\xef\xbb\xbf"
      "data: one\n\n"
      ": comment\n\n"
      "event: add\r\ndata:two\r\ndata:  three\r\nid: 7\r\n\r\n"
      "data\rdata\r\r"
      "data: [DONE]\n\n");
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0].data, "one");
  EXPECT_EQ(events[1].data, "");
  EXPECT_EQ(events[2].type, "add");
  EXPECT_EQ(events[2].data, "two\n three");
  EXPECT_EQ(events[3].data, "\n");
  EXPECT_EQ(events[4].data, "[DONE]");
}

// An event must not wait for the byte behind it, or each token comes one token late.
TEST(SseTest, GivesAnEventWithItsLastByte) {
  for (const std::string end : {"\n\n", "\r\n\r\n", "\r\r"}) {
    EXPECT_EQ(Split("data: x" + end).size(), 1u) << testing::PrintToString(end);
  }
}

TEST(SseTest, KeepsWhatHasNotEnded) {
  std::string pending;
  EXPECT_EQ(Split("data: a\n\ndata: b\n", [] { return size_t{3}; }, &pending).size(), 1u);
  EXPECT_EQ(pending, "data: b\n");
}

TEST(SseTest, TakesLinesOf16MiBAndNoEndlessOnes) {
  const std::string big = "data: " + std::string(16 << 20, 'x') + "\n\n";
  const auto events = Split(big, [] { return size_t{65536}; });
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].data.size(), 16u << 20);

  SseSplitter splitter(1000);
  const std::string endless(1001, 'x');
  splitter.Feed(endless);
  EXPECT_FALSE(splitter.Next());
  ASSERT_FALSE(splitter.status());
  EXPECT_EQ(splitter.status().error().code, Code::kTooLarge);
  splitter.Feed("\n\ndata: x\n\n");
  EXPECT_FALSE(splitter.Next());
}

RC_GTEST_PROP(SseTest, PiecesDoNotMatterAndNoByteIsLost, ()) {
  const auto text = *rc::gen::container<std::string>(
      rc::gen::element('\n', '\n', '\r', 'd', ':', ' ', '\xf0', '\x9f'));
  const auto sizes =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(1, 6)));
  size_t i = 0;
  std::string pending, whole_pending;
  const auto pieces = Split(text, [&] { return sizes[i++ % sizes.size()]; }, &pending);
  const auto whole = Split(text, [] { return size_t{1} << 30; }, &whole_pending);
  RC_ASSERT(pieces == whole);
  RC_ASSERT(pending == whole_pending);
  std::string raw;
  for (const Event& e : pieces) raw += e.raw;
  RC_ASSERT(raw + pending == text);
}

RC_GTEST_PROP(SseTest, EncodedEventsComeBack, ()) {
  auto data = *rc::gen::container<std::string>(rc::gen::element('a', '\n', ' ', ':'));
  std::string text;
  AppendSse(text, data, "t");
  const auto events = Split(text);
  RC_ASSERT(events.size() == 1u);
  RC_ASSERT(events[0].data == data);
  RC_ASSERT(events[0].type == "t");
}

}  // namespace
}  // namespace hidane::net
