#include "cli/signals.h"

#include <csignal>
#include <ctime>

namespace hidane::cli {
namespace {

sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

void BlockStopSignals() {
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

bool WaitForStop(std::chrono::milliseconds timeout) {
  const sigset_t set = StopSignals();
  const timespec limit{timeout.count() / 1000, timeout.count() % 1000 * 1'000'000};
  return sigtimedwait(&set, nullptr, &limit) > 0;
}

}  // namespace hidane::cli
