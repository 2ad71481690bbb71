#pragma once
#include <functional>
#include <memory>

#include "base/clock.h"
#include "net/task.h"

namespace hidane::net {

class Reactor;

/// One event loop: one thread, its sockets, its timers. Everything created on a loop is used on
/// its thread only; Stop and Post alone may be called from anywhere.
class Loop {
 public:
  Loop();
  /// Destroys the coroutines that still wait. REQUIRES: Run isn't active.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Serves the loop on the calling thread until Stop.
  void Run();
  /// Makes Run return soon; a later Run goes on. Thread-safe.
  void Stop();
  /// Runs `fn` on the loop's thread, in the order posted. Thread-safe; one wake for a burst.
  void Post(std::function<void()> fn);
  /// Starts a coroutine. On the loop's thread, or before Run.
  void Spawn(Task<> task);
  /// Suspends the calling coroutine. Ends up to about 1 ms late, never early.
  Task<> SleepFor(Duration duration);

  Reactor& reactor() { return *reactor_; }  ///< for this room only

 private:
  std::unique_ptr<Reactor> reactor_;
};

/// Calls `fn` once on the loop's thread, `Arm`'s duration from now: up to about 1 ms late, never
/// early. Arm, re-arm and Disarm are O(1) and make no system call: thousands may be armed.
class Deadline {
 public:
  Deadline(Loop& loop, std::function<void()> fn);
  ~Deadline();  ///< disarms
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  void Arm(Duration duration);
  void Disarm();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Wakes one waiting coroutine of the same loop. A Notify without a waiter is kept for the next
/// Wait. From another thread: `loop.Post([e] { e->Notify(); })` with shared ownership.
class Event {
 public:
  explicit Event(Loop& loop);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void Notify();
  /// REQUIRES: nobody else waits.
  Task<> Wait();
  /// False when `timeout` passed first. REQUIRES: nobody else waits.
  Task<bool> WaitFor(Duration timeout);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hidane::net
