#include "net/reactor.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstdint>
#include <exception>

#include "base/assert.h"

namespace hidane::net {

Waiter::Waiter(Reactor& reactor) : ReadyNode(reactor) {}
Waiter::~Waiter() {
  Drop();
}

void Waiter::Link() {
  reactor_.waiting_.push_back(*this);
}

void Waiter::Wake() {
  if (run_ != nullptr) reactor_.Ready(*this);
}

void Waiter::Run() {
  all_hook_.unlink();
  std::exchange(run_, nullptr)(handler_, true);
}

void Waiter::Drop() {
  if (run_ == nullptr) return;
  all_hook_.unlink();
  if (is_linked()) unlink();
  std::exchange(run_, nullptr)(handler_, false);
}

Reactor::Reactor()
    : epoll_fd_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      timers_(SteadyClock().Now()),
      work_(io_.get_executor()) {
  HIDANE_ASSERT(epoll_fd_ >= 0 && wake_fd_ >= 0);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.ptr = nullptr;
  HIDANE_ASSERT(::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, wake_fd_, &event) == 0);
}

Reactor::~Reactor() {
  // Destroying a coroutine may let another go on, so until none waits.
  do {
    while (!waiting_.empty()) waiting_.front().Drop();
    io_.poll();
    ready_.clear();
  } while (!waiting_.empty());
  posted_.clear();
  ::close(wake_fd_);
  ::close(epoll_fd_);
}

void Reactor::Run() {
  stop_.store(false);
  while (!stop_.load(std::memory_order_relaxed)) {
    // Inside a handler, Asio recycles the memory of coroutine frames.
    boost::asio::post(io_, [this] { Turn(); });
    io_.poll();
  }
}

void Reactor::Stop() {
  Post([this] { stop_.store(true); });
}

void Reactor::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake_fd_, &one, sizeof one);
}

void Reactor::Post(std::function<void()> fn) {
  bool first;
  {
    const std::lock_guard lock(posted_mutex_);
    first = posted_.empty();
    posted_.push_back(std::move(fn));
  }
  if (first) Wake();
}

void Reactor::Spawn(Task<> task) {
  boost::asio::co_spawn(io_, std::move(task), [](std::exception_ptr error) {
    if (error) std::rethrow_exception(error);  // nothing here throws but for lack of memory
  });
}

void Reactor::Add(int fd, Watch& watch) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &watch;
  HIDANE_ASSERT(::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0);
}

void Reactor::Arm(TimerWheel::Timer& timer, Duration after) {
  timers_.Arm(timer, SteadyClock().Now() + after);
}

int Reactor::TimeoutMs() {
  if (!ready_.empty()) return 0;
  const auto next = timers_.Next();
  if (!next) return -1;
  const Duration left = *next - SteadyClock().Now();
  if (left <= Duration(0)) return 0;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

void Reactor::Turn() {
  epoll_event events[256];
  const int n = ::epoll_wait(epoll_fd_, events, std::size(events), TimeoutMs());
  HIDANE_ASSERT(n >= 0 || errno == EINTR);
  // Only flags are set here, so that every pointer of this batch stays good.
  bool posted = false;
  for (int i = 0; i < n; ++i) {
    if (events[i].data.ptr == nullptr) {
      posted = true;
    } else {
      static_cast<Watch*>(events[i].data.ptr)->OnEvents(events[i].events);
    }
  }
  if (posted) RunPosted();
  timers_.Advance(SteadyClock().Now());
  RunReady();
}

void Reactor::RunPosted() {
  {
    const std::lock_guard lock(posted_mutex_);
    running_.swap(posted_);
  }
  for (auto& fn : running_) fn();
  running_.clear();
}

void Reactor::RunReady() {
  decltype(ready_) now;
  now.swap(ready_);  // what becomes ready meanwhile waits for the next round: sockets come first
  while (!now.empty()) {
    ReadyNode& node = now.front();
    node.unlink();
    node.Run();
  }
}

}  // namespace hidane::net
