#include "model/parallel.h"

namespace hidane::model {
namespace {

// About 20 us: longer than the gap between two kernels of a step, shorter than a time slice that
// another engine could use.
constexpr int kSpins = 400;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Returns once `value` differs from `old`.
void AwaitChange(const std::atomic<uint32_t>& value, uint32_t old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    Pause();
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
  next_.store(0, std::memory_order_relaxed);
  running_.store(static_cast<uint32_t>(workers_.size()), std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  Drain(0);
  while (const uint32_t left = running_.load(std::memory_order_acquire))
    AwaitChange(running_, left);
}

void Pool::Drain(uint32_t thread) {
  for (uint32_t task; (task = next_.fetch_add(1, std::memory_order_relaxed)) < tasks_;)
    call_(fn_, task, thread);
}

void Pool::Work(uint32_t thread) {
  for (uint32_t seen = 0;; ++seen) {
    AwaitChange(epoch_, seen);
    if (stop_.load(std::memory_order_relaxed)) return;
    Drain(thread);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

}  // namespace hidane::model
