#include "model/parallel.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace hidane::model {
namespace {

class PoolOf : public testing::TestWithParam<uint32_t> {};

// Forks follow each other at once: workers come late to most, and must not take part in the next
// under the last one's terms.
TEST_P(PoolOf, RunsEveryTaskOnceAndHasItsResultsAtTheEnd) {
  Pool pool(GetParam());
  for (uint32_t fork = 0; fork < 2000; ++fork) {
    std::vector<uint32_t> done(fork % 7 * 3);
    pool.ForEach(static_cast<uint32_t>(done.size()), [&, fork](uint32_t task, uint32_t thread) {
      ASSERT_LT(thread, pool.threads());
      done[task] += task + fork;
    });
    for (uint32_t task = 0; task < done.size(); ++task) ASSERT_EQ(done[task], task + fork);
  }
}

TEST_P(PoolOf, GivesAThreadOneTaskAtATime) {
  Pool pool(GetParam());
  constexpr uint32_t kTasks = 20000;
  std::vector<uint32_t> taken(pool.threads());
  pool.ForEach(kTasks, [&](uint32_t, uint32_t thread) { ++taken[thread]; });
  EXPECT_EQ(std::accumulate(taken.begin(), taken.end(), 0u), kTasks);
}

INSTANTIATE_TEST_SUITE_P(Threads, PoolOf, testing::Values(1, 2, 4));

}  // namespace
}  // namespace hidane::model
