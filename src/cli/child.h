#pragma once
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace hidane::cli {

/// A `hidane` process of our own that never outlives us: the kernel kills it when the thread that
/// started it ends, whatever ended that. In a process group of its own, so that Ctrl-C reaches only
/// us. Start and destroy it on one thread that lives long, the main one.
class Child {
 public:
  /// Runs this very program with `args`; its stderr is appended to `log_path`. kUnavailable if the
  /// log can't be opened or no process can be had.
  static Result<Child> Start(std::string name, const std::vector<std::string>& args,
                             std::string log_path);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();  ///< Stop()

  /// Waits for the first line of its stdout; nullopt while it is still to come. kUnavailable, with
  /// the last line of its log, when it ended before.
  Result<std::optional<std::string>> FirstLine(std::chrono::milliseconds timeout);
  bool Ended();      ///< reaped if so
  void AskToStop();  ///< SIGTERM, without waiting
  /// SIGTERM, and SIGKILL after `grace`. Idempotent.
  void Stop(std::chrono::milliseconds grace = std::chrono::seconds(3));
  pid_t pid() const { return pid_; }
  const std::string& name() const { return name_; }
  std::string LastLogLine() const;

 private:
  Child(std::string name, pid_t pid, int out, std::string log_path);
  std::string name_, log_path_, line_;
  pid_t pid_;
  int out_;  // read end of its stdout
};

}  // namespace hidane::cli
