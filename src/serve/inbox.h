#pragma once
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "net/loop.h"
#include "net/task.h"

namespace hidane::serve {

/// Carries values from any thread to one coroutine of a loop. The inbox itself belongs to the
/// loop's thread; senders outlive it freely: what they send afterwards is dropped. A burst of sends
/// wakes the loop once.
template <class T>
class Inbox {
  struct State {
    explicit State(net::Loop& l) : loop(l) {}
    net::Loop& loop;
    net::Event* event = nullptr;  // loop thread only; nullptr once the inbox is gone
    std::mutex mutex;             // guards what follows
    std::vector<T> values;
    bool open = true;
    bool waking = false;
  };

 public:
  class Sender {
   public:
    /// Thread-safe; doesn't wait for the receiver.
    void Send(T value) const {
      const std::lock_guard lock(state_->mutex);
      if (!state_->open) return;
      state_->values.push_back(std::move(value));
      if (std::exchange(state_->waking, true)) return;
      state_->loop.Post([state = state_] {
        if (state->event != nullptr) state->event->Notify();
      });
    }

   private:
    friend class Inbox;
    explicit Sender(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
  };

  explicit Inbox(net::Loop& loop) : state_(std::make_shared<State>(loop)), event_(loop) {
    state_->event = &event_;
  }
  ~Inbox() {
    state_->event = nullptr;
    const std::lock_guard lock(state_->mutex);
    state_->open = false;
  }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  Sender sender() const { return Sender(state_); }

  /// Waits for values: at least one, in the order sent. REQUIRES: nobody else waits.
  net::Task<std::vector<T>> Receive() {
    while (true) {
      {
        const std::lock_guard lock(state_->mutex);
        state_->waking = false;
        if (!state_->values.empty()) co_return std::exchange(state_->values, {});
      }
      co_await event_.Wait();
    }
  }

 private:
  std::shared_ptr<State> state_;
  net::Event event_;
};

}  // namespace hidane::serve
