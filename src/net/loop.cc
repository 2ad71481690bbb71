#include "net/loop.h"

#include "net/reactor.h"

namespace hidane::net {

Loop::Loop() : reactor_(std::make_unique<Reactor>()) {}
Loop::~Loop() = default;
void Loop::Run() {
  reactor_->Run();
}
void Loop::Stop() {
  reactor_->Stop();
}
void Loop::Post(std::function<void()> fn) {
  reactor_->Post(std::move(fn));
}
void Loop::Spawn(Task<> task) {
  reactor_->Spawn(std::move(task));
}

struct Deadline::Impl final : TimerWheel::Timer {
  Impl(Reactor& r, std::function<void()> f) : reactor(r), fn(std::move(f)) {}
  void OnDue() override { fn(); }
  Reactor& reactor;
  std::function<void()> fn;
};

Deadline::Deadline(Loop& loop, std::function<void()> fn)
    : impl_(std::make_unique<Impl>(loop.reactor(), std::move(fn))) {}
Deadline::~Deadline() = default;
void Deadline::Arm(Duration duration) {
  impl_->reactor.Arm(*impl_, duration);
}
void Deadline::Disarm() {
  impl_->Disarm();
}

struct Event::Impl final : TimerWheel::Timer {
  explicit Impl(Reactor& r) : reactor(r), waiter(r) {}
  void OnDue() override {
    timed_out = true;
    waiter.Wake();
  }
  Reactor& reactor;
  Waiter waiter;
  bool notified = false, timed_out = false;
};

Event::Event(Loop& loop) : impl_(std::make_unique<Impl>(loop.reactor())) {}
Event::~Event() = default;

void Event::Notify() {
  impl_->notified = true;
  impl_->waiter.Wake();
}

Task<> Event::Wait() {
  if (!impl_->notified) co_await impl_->waiter.Suspend();
  impl_->notified = false;
}

Task<bool> Event::WaitFor(Duration timeout) {
  impl_->timed_out = false;
  if (!impl_->notified) {
    impl_->reactor.Arm(*impl_, timeout);
    co_await impl_->waiter.Suspend();
    impl_->Disarm();
  }
  co_return std::exchange(impl_->notified, false);
}

Task<> Loop::SleepFor(Duration duration) {
  Event event(*this);
  co_await event.WaitFor(duration);
}

}  // namespace hidane::net
