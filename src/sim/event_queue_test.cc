#include "sim/event_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace hidane::sim {
namespace {

TEST(EventQueue, PopsByTimeThenByOrderOfPush) {
  EventQueue<char> queue;
  queue.Push(TimePoint(2), 'c');
  queue.Push(TimePoint(1), 'a');
  queue.Push(TimePoint(2), 'd');
  queue.Push(TimePoint(1), 'b');
  std::string popped;
  while (!queue.empty()) popped += queue.Pop().event;
  EXPECT_EQ(popped, "abcd");
}

RC_GTEST_PROP(EventQueue, IsAStableSortOfWhatWasPushed, ()) {
  const auto times = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 20));
  EventQueue<size_t> queue;
  for (size_t i = 0; i < times.size(); ++i) queue.Push(TimePoint(times[i]), i);
  std::vector<size_t> expected(times.size());
  for (size_t i = 0; i < times.size(); ++i) expected[i] = i;
  std::ranges::stable_sort(expected, {}, [&](size_t i) { return times[i]; });
  for (const size_t i : expected) {
    RC_ASSERT(queue.next_at() == TimePoint(times[i]));
    RC_ASSERT(queue.Pop().event == i);
  }
  RC_ASSERT(queue.empty());
}

}  // namespace
}  // namespace hidane::sim
