#pragma once
#include <chrono>
#include <string_view>

namespace hidane::cli {

bool IsTerminal(int fd);  ///< and NO_COLOR is not set

/// What is going on, on stderr: one line rewritten in place on a terminal; elsewhere a line now and
/// then, so that a log stays short. Used from one thread.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { Clear(); }
  void Show(std::string_view text);  ///< as often as you like
  void Say(std::string_view text);   ///< always, as a line of its own
  void Clear();

 private:
  bool terminal_, shown_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace hidane::cli
