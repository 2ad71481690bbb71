#include "model/parallel.h"

namespace hidane::model {
namespace {

// About 10 us: longer than the gap between two kernels of a step.
constexpr int kSpins = 400;
// Some 100 us more on an idle machine, longer than most tasks; where another engine wants the core,
// it has it.
constexpr int kYields = 300;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Returns once `value` differs from `old`.
void AwaitChange(const std::atomic<uint32_t>& value, uint32_t old) {
  for (int i = 0; i < kSpins + kYields; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    if (i < kSpins) {
      Pause();
    } else {
      std::this_thread::yield();
    }
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

Pool::Pool(uint32_t threads) {
  for (uint32_t i = 1; i < threads; ++i) workers_.emplace_back([this, i] { Work(i); });
}

Pool::~Pool() {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Pool::Fork(uint32_t tasks, Call call, void* fn) {
  call_ = call;
  fn_ = fn;
  tasks_ = tasks;
  unfinished_.store(tasks, std::memory_order_relaxed);
  left_.store(static_cast<int32_t>(tasks), std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  Drain(0);
  while (const uint32_t unfinished = unfinished_.load(std::memory_order_acquire))
    AwaitChange(unfinished_, unfinished);
}

void Pool::Drain(uint32_t thread) {
  for (int32_t left; (left = left_.fetch_sub(1, std::memory_order_acquire)) > 0;) {
    call_(fn_, tasks_ - static_cast<uint32_t>(left), thread);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
  }
}

void Pool::Work(uint32_t thread) {
  for (uint32_t seen = 0;;) {
    AwaitChange(epoch_, seen);
    if (stop_.load(std::memory_order_relaxed)) return;
    seen = epoch_.load(std::memory_order_acquire);
    Drain(thread);
  }
}

}  // namespace hidane::model
