#pragma once
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace hidane::model {

/// Fork-join over a few threads, for kernels of microseconds.
///
/// Tasks are handed out one by one, so a thread that the system pauses (several engines share the
/// cores) delays one task, not half of the work. A worker spins for a moment after its last task,
/// since the next fork usually follows at once, then sleeps. One thread, the owner's, forks; tasks
/// never fork. No allocation per call.
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
  alignas(64) std::atomic<uint32_t> next_{0};     ///< first task not handed out
  alignas(64) std::atomic<uint32_t> epoch_{0};    ///< forks so far
  alignas(64) std::atomic<uint32_t> running_{0};  ///< workers still in this fork
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace hidane::model
