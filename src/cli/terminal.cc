#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace hidane::cli {

bool IsTerminal(int fd) {
  return isatty(fd) == 1 && std::getenv("NO_COLOR") == nullptr;
}

ProgressLine::ProgressLine()
    : terminal_(isatty(STDERR_FILENO) == 1), next_(std::chrono::steady_clock::now()) {}

void ProgressLine::Show(std::string_view text) {
  using namespace std::chrono_literals;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + (terminal_ ? 100ms : 10s);
  if (terminal_) {
    fmt::print(stderr, "\r\x1b[K{}", text);
    shown_ = true;
  } else {
    fmt::print(stderr, "{}\n", text);
  }
  std::fflush(stderr);
}

void ProgressLine::Say(std::string_view text) {
  Clear();
  fmt::print(stderr, "{}\n", text);
}

void ProgressLine::Clear() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
  shown_ = false;
}

}  // namespace hidane::cli
