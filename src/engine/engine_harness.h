#pragma once
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/engine.h"

/// For tests: runs requests and collects what their sinks got.
namespace hidane::engine {

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<Event> events;
  bool done = false;
  Finish finish() const { return done ? events.back().finish : Finish::kNone; }
};

/// Collects the events of many requests. Must outlive the engine.
class Collector {
 public:
  /// A sink for the n-th request. `on_event` runs on the engine thread, with the answer so far.
  Sink SinkFor(size_t n, std::function<void(const Answer&)> on_event = {}) {
    return [this, n, on_event = std::move(on_event)](const Event& event) {
      const std::lock_guard lock(mutex_);
      Answer& answer = answers_[n];
      after_end_ += answer.done;
      answer.events.push_back(event);
      if (event.token >= 0) answer.tokens.push_back(event.token);
      answer.done = event.finish != Finish::kNone;
      if (on_event) on_event(answer);
      if (answer.done) changed_.notify_all();
    };
  }

  Answer WaitFor(size_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return answers_[n].done; });
    return answers_[n];
  }
  int events_after_end() const { return after_end_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<size_t, Answer> answers_;
  int after_end_ = 0;
};

/// Runs all requests at once and waits for all answers.
inline std::vector<Answer> RunAll(Engine& engine, const std::vector<Request>& requests) {
  auto collector = std::make_shared<Collector>();
  std::vector<Answer> answers;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto id = engine.Submit(requests[i], [collector, sink = collector->SinkFor(i)](
                                                   const Event& event) { sink(event); });
    if (!id) return {};
  }
  for (size_t i = 0; i < requests.size(); ++i) answers.push_back(collector->WaitFor(i));
  return answers;
}

/// Runs all requests at once and waits for the answers of all their choices.
inline std::vector<std::vector<Answer>> RunChoices(Engine& engine,
                                                   const std::vector<Request>& requests) {
  constexpr size_t kEach = 1000;
  auto collector = std::make_shared<Collector>();
  std::vector<std::vector<Answer>> answers(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto id = engine.Submit(requests[i], [collector, i](const Event& event) {
      collector->SinkFor(i * kEach + event.choice)(event);
    });
    if (!id) return {};
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    for (uint32_t choice = 0; choice < requests[i].choices; ++choice)
      answers[i].push_back(collector->WaitFor(i * kEach + choice));
  }
  return answers;
}

/// Waits until the engine thread has nothing to do.
inline EngineStats WaitUntilIdle(const Engine& engine) {
  for (;;) {
    const EngineStats stats = engine.stats();
    if (stats.running + stats.waiting == 0) return stats;
    std::this_thread::yield();
  }
}

}  // namespace hidane::engine
