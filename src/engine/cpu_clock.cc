#include <ctime>

#include "engine/engine.h"

namespace hidane::engine {
namespace {

template <clockid_t kId>
struct CpuClock final : Clock {
  TimePoint Now() const override {
    timespec t{};
    clock_gettime(kId, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
  }
};

}  // namespace

const Clock& ThreadCpuClock() {
  static const CpuClock<CLOCK_THREAD_CPUTIME_ID> clock;
  return clock;
}

const Clock& ProcessCpuClock() {
  static const CpuClock<CLOCK_PROCESS_CPUTIME_ID> clock;
  return clock;
}

}  // namespace hidane::engine
