#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hidane::serve {

/// A few threads for work that would hold up the I/O loop, with a bounded queue. Thread-safe.
class WorkerPool {
 public:
  /// REQUIRES: threads >= 1.
  WorkerPool(uint32_t threads, uint32_t queue_max);
  /// Runs what is queued, then ends the threads.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// False when `queue_max` jobs wait already; then the job is not run.
  bool Submit(std::function<void()> job);

 private:
  void Work();

  const uint32_t queue_max_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace hidane::serve
