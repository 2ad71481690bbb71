// A sanitizer brings an allocator of its own, which must not be replaced by half.
#ifndef HIDANE_SANITIZED
#include <gtest/gtest.h>

#include "admission/working_set.h"
#include "base/counted_new.h"

namespace hidane::admission {
namespace {

TEST(AllocationTest, ATurnOfAConversationInsideAllocatesNothing) {
  WorkingSet set({});
  set.SetCapacity(1'000'000, TimePoint{});
  const auto round = [&set](TimePoint now) {
    for (uint64_t c = 1; c <= 100; ++c) {
      const Verdict verdict =
          set.Arrive({.conversation = c, .prefix = c % 5, .own_tokens = 100}, now);
      ASSERT_EQ(verdict.kind, Verdict::Kind::kGo);
      set.Done(verdict.ticket, 110, now);
      ASSERT_TRUE(set.TakeLetIn().empty());
    }
    set.Tick(now);
  };
  round(FromSeconds(0));
  const size_t before = g_allocations;
  for (int i = 1; i <= 10; ++i) round(FromSeconds(i));
  EXPECT_EQ(g_allocations - before, 0u);
}

}  // namespace
}  // namespace hidane::admission

#endif  // HIDANE_SANITIZED
