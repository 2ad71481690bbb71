#pragma once
#include <chrono>

namespace hidane::cli {

/// Keeps SIGINT, SIGTERM and SIGHUP from this thread and all that it starts later, so that
/// WaitForStop takes them. Call before any thread starts.
void BlockStopSignals();

/// Waits until one arrives; true then, false when `timeout` passed first. Main thread.
bool WaitForStop(std::chrono::milliseconds timeout);
inline void WaitForStop() {
  while (!WaitForStop(std::chrono::hours(1))) {
  }
}

}  // namespace hidane::cli
