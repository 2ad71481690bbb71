#include "serve/stop_matcher.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace hidane::serve {
namespace {

// Goal: a stop string that spans tokens is never shown, not even its beginning.
TEST(StopMatcher, HoldsBackWhatMayBeAStop) {
  StopMatcher m({"</end>"});
  EXPECT_EQ(m.Push("one </"), "one ");
  EXPECT_EQ(m.Push("en"), "");
  EXPECT_EQ(m.Push("d> two"), "");
  EXPECT_TRUE(m.stopped());
  EXPECT_EQ(m.Push("three"), "");
  EXPECT_EQ(m.Flush(), "");
}

TEST(StopMatcher, ShowsWhatTurnsOutToBeNone) {
  StopMatcher m({"</end>"});
  EXPECT_EQ(m.Push("a</e"), "a");
  EXPECT_EQ(m.Push("m>"), "</em>");
  EXPECT_FALSE(m.stopped());
}

TEST(StopMatcher, FlushGivesWhatWasHeldBack) {
  StopMatcher m({"stop"});
  EXPECT_EQ(m.Push("a sto"), "a ");
  EXPECT_EQ(m.Flush(), "sto");
}

TEST(StopMatcher, WithoutStopsNothingIsHeldBack) {
  StopMatcher m({});
  EXPECT_EQ(m.Push("anything"), "anything");
  EXPECT_EQ(m.Flush(), "");
}

TEST(StopMatcher, TheStopCompleteFirstCounts) {
  EXPECT_EQ(StopMatcher({"abc", "b"}).Push("xabc"), "xa");
  EXPECT_EQ(StopMatcher({"bc", "abc"}).Push("xabc"), "x") << "both end there: the longest";
}

// Model: the text read byte by byte, every end compared with every stop string.
RC_GTEST_PROP(StopMatcherProps, AgreesWithTheModelHoweverTheTextIsCut, ()) {
  const auto word = rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab")));
  const auto stops = *rc::gen::container<std::vector<std::string>>(rc::gen::nonEmpty(word));
  const auto pieces = *rc::gen::container<std::vector<std::string>>(word);

  std::string expected;
  bool stopped = false;
  for (const auto& piece : pieces) {
    for (const char c : piece) {
      if (stopped) break;
      expected += c;
      size_t longest = 0;
      for (const auto& stop : stops) {
        if (expected.ends_with(stop)) longest = std::max(longest, stop.size());
      }
      stopped = longest > 0;
      expected.resize(expected.size() - longest);
    }
  }

  StopMatcher m(stops);
  std::string shown;
  for (const auto& piece : pieces) {
    shown += m.Push(piece);
    RC_ASSERT(expected.starts_with(shown));
  }
  shown += m.Flush();
  RC_ASSERT(shown == expected);
  RC_ASSERT(m.stopped() == stopped);
}

}  // namespace
}  // namespace hidane::serve
