#include "cli/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

namespace hidane::cli {
namespace {

/// In the new process, between fork and exec: only async-signal-safe calls.
[[noreturn]] void Become(char* const* argv, int out, int log, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before the line above
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(out, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv("/proc/self/exe", argv);
  _exit(127);
}

Error CannotStart(const std::string& name) {
  return {Code::kUnavailable, fmt::format("cannot start {}: {}", name, std::strerror(errno)), {}};
}

}  // namespace

Result<Child> Child::Start(std::string name, const std::vector<std::string>& args,
                           std::string log_path) {
  std::vector<std::string> words = {"hidane"};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  int out[2];
  const int log = open(log_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (log < 0) return Fail(Code::kUnavailable, fmt::format("cannot write {}", log_path));
  if (pipe2(out, O_CLOEXEC) != 0) {
    close(log);
    return Fail(CannotStart(name));
  }
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) Become(argv.data(), out[1], log, parent);
  close(log);
  close(out[1]);
  if (pid < 0) {
    close(out[0]);
    return Fail(CannotStart(name));
  }
  return Child(std::move(name), pid, out[0], std::move(log_path));
}

Child::Child(std::string name, pid_t pid, int out, std::string log_path)
    : name_(std::move(name)), log_path_(std::move(log_path)), pid_(pid), out_(out) {}

Child::Child(Child&& other) noexcept : pid_(-1), out_(-1) {
  *this = std::move(other);
}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(log_path_, other.log_path_);
  std::swap(line_, other.line_);
  std::swap(pid_, other.pid_);
  std::swap(out_, other.out_);
  return *this;
}

Child::~Child() {
  Stop();
  if (out_ >= 0) close(out_);
}

Result<std::optional<std::string>> Child::FirstLine(std::chrono::milliseconds timeout) {
  pollfd fd{out_, POLLIN, 0};
  if (poll(&fd, 1, static_cast<int>(timeout.count())) <= 0) return std::optional<std::string>();
  char buffer[256];
  const ssize_t n = read(out_, buffer, sizeof buffer);
  if (n <= 0) {
    const std::string last = LastLogLine();
    return Fail(Code::kUnavailable,
                fmt::format("{} ended at once: {} (log: {})", name_,
                            last.empty() ? "it said nothing" : last, log_path_));
  }
  line_.append(buffer, static_cast<size_t>(n));
  const size_t end = line_.find('\n');
  if (end == std::string::npos) return std::optional<std::string>();
  return std::optional<std::string>(line_.substr(0, end));
}

bool Child::Ended() {
  if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ < 0;
}

void Child::AskToStop() {
  if (!Ended()) kill(pid_, SIGTERM);
}

void Child::Stop(std::chrono::milliseconds grace) {
  AskToStop();
  const auto deadline = std::chrono::steady_clock::now() + grace;
  while (!Ended() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

std::string Child::LastLogLine() const {
  std::ifstream file(log_path_);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = std::move(line);
  }
  return last;
}

}  // namespace hidane::cli
