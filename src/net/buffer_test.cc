#include "net/buffer.h"

#include <gtest/gtest.h>

namespace hidane::net {
namespace {

Buffer Of(size_t capacity) {
  Buffer buffer;
  buffer.Prepare(capacity);
  buffer.Append("used");
  return buffer;
}

TEST(SpareBuffersTest, GivesTheLastUsedWithEnoughRoomAndEmpty) {
  SpareBuffers spare(1000);
  spare.Give(Of(200));
  spare.Give(Of(210));
  spare.Give(Of(100));
  const Buffer taken = spare.Take(200);
  EXPECT_EQ(taken.capacity(), 210u);
  EXPECT_TRUE(taken.empty());
  EXPECT_EQ(spare.Take().capacity(), 100u);
  EXPECT_EQ(spare.Take().capacity(), 200u);
  EXPECT_EQ(spare.Take().capacity(), 0u);
}

TEST(SpareBuffersTest, HasNoneWhereAllAreTooSmall) {
  SpareBuffers spare(1000);
  spare.Give(Of(200));
  EXPECT_EQ(spare.Take(201).capacity(), 0u);
  EXPECT_EQ(spare.Take(200).capacity(), 200u);
}

TEST(SpareBuffersTest, OverItsBoundItDropsWhatRestedLongest) {
  SpareBuffers spare(1000);
  for (const size_t capacity : {210, 220, 230, 240, 250}) spare.Give(Of(capacity));
  for (const size_t capacity : {250, 240, 230, 220}) EXPECT_EQ(spare.Take().capacity(), capacity);
  EXPECT_EQ(spare.Take().capacity(), 0u);
}

TEST(SpareBuffersTest, ALargeBufferDoesNotStay) {
  SpareBuffers spare(1000);
  spare.Give(Of(251));
  EXPECT_EQ(spare.Take().capacity(), 0u);
}

}  // namespace
}  // namespace hidane::net
