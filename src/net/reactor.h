#pragma once
#include <atomic>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <functional>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "net/task.h"
#include "net/timer_wheel.h"

namespace hidane::net {

class Reactor;

/// Something to run on the loop soon. Queued at most once; destroying it takes it off.
class ReadyNode : public boost::intrusive::list_base_hook<
                      boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  explicit ReadyNode(Reactor& reactor) : reactor_(reactor) {}
  ReadyNode(const ReadyNode&) = delete;
  ReadyNode& operator=(const ReadyNode&) = delete;

 protected:
  ~ReadyNode() = default;
  friend class Reactor;
  virtual void Run() = 0;  ///< may destroy the node

  Reactor& reactor_;
};

/// The place where one coroutine waits, made to be reused: no allocation per wait.
class Waiter final : ReadyNode {
 public:
  explicit Waiter(Reactor& reactor);
  ~Waiter();

  /// `co_await waiter.Suspend();` returns after a Wake. REQUIRES: nobody waits here.
  auto Suspend() {
    auto keep = [this](auto handler) { Keep(std::move(handler)); };
    return boost::asio::async_initiate<const boost::asio::deferred_t&, void()>(
        keep, boost::asio::deferred);
  }
  /// Lets the waiting coroutine go on, from the loop and not from inside this call.
  void Wake();
  bool waiting() const { return run_ != nullptr; }

 private:
  friend class Reactor;
  using Run_ = void (*)(void* handler, bool call);
  static constexpr size_t kHandlerBytes = 32;

  template <class Handler>
  void Keep(Handler handler) {
    static_assert(sizeof(Handler) <= kHandlerBytes && alignof(Handler) <= alignof(void*));
    ::new (static_cast<void*>(handler_)) Handler(std::move(handler));
    run_ = [](void* at, bool call) {
      auto* kept = static_cast<Handler*>(at);
      Handler local(std::move(*kept));
      kept->~Handler();
      if (call) std::move(local)();
    };
    Link();
  }
  void Link();
  void Run() override;
  void Drop();  // destroys the waiting coroutine

  alignas(void*) std::byte handler_[kHandlerBytes];
  Run_ run_ = nullptr;

 public:
  boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>
      all_hook_;  // in the reactor's list of waiting coroutines
};

/// A file descriptor in the epoll set, edge-triggered, registered once for its whole life: no
/// system call between waits.
class Watch {
 public:
  virtual void OnEvents(uint32_t events) = 0;  ///< sets flags and wakes; runs no user code

 protected:
  ~Watch() = default;
};

/// epoll, timers and a run queue. Coroutines are Asio's and run on its io_context, which has no
/// reactor of its own here: Asio's sockets would cost an epoll_ctl for each wait and a failed read
/// before it, and can't tell of a peer's leaving while nobody reads.
class Reactor {
 public:
  Reactor();
  ~Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  void Run();
  void Stop();
  void Post(std::function<void()> fn);
  void Spawn(Task<> task);

  void Add(int fd, Watch& watch);
  void Arm(TimerWheel::Timer& timer, Duration after);
  void Ready(ReadyNode& node) {
    if (!node.is_linked()) ready_.push_back(node);
  }

 private:
  friend class Waiter;
  void Turn();  // one round: events, timers, posted functions, ready nodes
  int TimeoutMs();
  void RunPosted();
  void RunReady();
  void Wake();

  using Hook =
      boost::intrusive::member_hook<Waiter,
                                    boost::intrusive::list_member_hook<
                                        boost::intrusive::link_mode<boost::intrusive::auto_unlink>>,
                                    &Waiter::all_hook_>;
  boost::intrusive::list<Waiter, Hook, boost::intrusive::constant_time_size<false>> waiting_;
  boost::intrusive::list<ReadyNode, boost::intrusive::constant_time_size<false>> ready_;
  int epoll_fd_, wake_fd_;
  TimerWheel timers_;
  std::atomic<bool> stop_{false};
  std::mutex posted_mutex_;
  std::vector<std::function<void()>> posted_;  // guarded by posted_mutex_
  std::vector<std::function<void()>> running_;
  boost::asio::io_context io_{1};  // last: what it destroys uses the above
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
};

}  // namespace hidane::net
