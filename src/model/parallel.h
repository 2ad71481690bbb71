#pragma once
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace hidane::model {

/// Fork-join over a few threads, for kernels of microseconds.
///
/// Tasks are handed out one by one, so a thread that the system pauses (several engines share the
/// cores) delays one task, not half of the work; and a worker that is still asleep when the last
/// task is done is not waited for. A thread without a task spins for a moment, since the next fork
/// usually follows at once, then offers its core to others, then sleeps. One thread, the owner's,
/// forks; tasks never fork. No allocation per call.
class Pool {
 public:
  /// REQUIRES: threads >= 1, the owner's included.
  explicit Pool(uint32_t threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  uint32_t threads() const { return static_cast<uint32_t>(workers_.size()) + 1; }

  /// Calls fn(task, thread) once for every task < tasks, thread < threads(); returns when all are
  /// done. Cost: about a microsecond while the workers still spin, a wake-up otherwise.
  template <class Fn>
  void ForEach(uint32_t tasks, Fn&& fn) {
    if (tasks <= 1 || workers_.empty()) {
      for (uint32_t task = 0; task < tasks; ++task) fn(task, 0u);
      return;
    }
    Fork(
        tasks,
        [](void* f, uint32_t task, uint32_t thread) {
          (*static_cast<std::remove_reference_t<Fn>*>(f))(task, thread);
        },
        &fn);
  }

 private:
  using Call = void (*)(void* fn, uint32_t task, uint32_t thread);
  void Fork(uint32_t tasks, Call call, void* fn);
  void Drain(uint32_t thread);
  void Work(uint32_t thread);

  Call call_ = nullptr;
  void* fn_ = nullptr;
  uint32_t tasks_ = 0;
  // Who takes a task holds up the end of its fork, and until then call_, fn_ and tasks_ stand.
  alignas(64) std::atomic<int32_t> left_{0};         ///< tasks not handed out, if positive
  alignas(64) std::atomic<uint32_t> unfinished_{0};  ///< tasks not done
  alignas(64) std::atomic<uint32_t> epoch_{0};       ///< forks so far
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace hidane::model
