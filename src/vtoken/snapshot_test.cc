#include "vtoken/snapshot.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

namespace hidane::vtoken {
namespace {

Snapshot Example() {
  return {.scope = Scope::kLayer,
          .units = 2,
          .logical_length = 9,
          .live = 3,
          .intact_tokens = 1,
          .tokens = {0, 7, 3, 8, 1, 2},
          .waiting = {1, 3},
          .policy = {std::byte{1}},
          .rows = {std::byte{2}, std::byte{3}}};
}

TEST(SnapshotTest, SurvivesAsBytes) {
  const auto decoded = Decode(Encode(Example()));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, Example());
}

TEST(SnapshotTest, RefusesWhatContradictsItself) {
  Snapshot snapshot = Example();
  snapshot.tokens[2] = 9;  // never appended
  EXPECT_FALSE(Validate(snapshot));
  snapshot = Example();
  snapshot.waiting[0] = 4;
  EXPECT_FALSE(Validate(snapshot));
  snapshot = Example();
  snapshot.tokens.pop_back();
  EXPECT_FALSE(Validate(snapshot));
  snapshot = Example();
  snapshot.units = 0;
  EXPECT_FALSE(Validate(snapshot));
  EXPECT_FALSE(Decode(Encode(snapshot)));
  snapshot = {.units = kUnitsMax + 1};  // nothing of a billion units
  EXPECT_FALSE(Validate(snapshot));
  snapshot = {.logical_length = kTokensMax + 1, .live = kTokensMax + 1};
  EXPECT_FALSE(Validate(snapshot));
}

RC_GTEST_PROP(SnapshotProps, AnyChangedByteIsNoticed, ()) {
  auto bytes = Encode(Example());
  const auto at = *rc::gen::inRange<size_t>(0, bytes.size());
  bytes[at] ^= static_cast<std::byte>(*rc::gen::inRange(1, 256));
  RC_ASSERT(!Decode(bytes).has_value());
}

RC_GTEST_PROP(SnapshotProps, ACutSnapshotIsRefused, ()) {
  const auto bytes = Encode(Example());
  const auto size = *rc::gen::inRange<size_t>(0, bytes.size());
  RC_ASSERT(!Decode(std::span(bytes).first(size)).has_value());
}

}  // namespace
}  // namespace hidane::vtoken
