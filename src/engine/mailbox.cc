#include "engine/mailbox.h"

#include <fmt/format.h>

namespace hidane::engine {

Result<SeqId> Mailbox::Submit(Request request, Sink sink, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (queued_ >= max_queue_) {
    return Fail(Code::kResourceExhausted, fmt::format("{} requests are waiting", queued_));
  }
  ++queued_;
  ++submits_;
  const SeqId id(std::exchange(next_id_, next_id_ + request.choices));
  commands_.push_back(SubmitCommand{id, std::move(request), std::move(sink), now});
  news_.notify_one();
  return id;
}

void Mailbox::Post(Command command) {
  const std::lock_guard lock(mutex_);
  commands_.push_back(std::move(command));
  news_.notify_one();
}

void Mailbox::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  news_.notify_one();
}

bool Mailbox::Take(bool busy, std::vector<Command>& inbox) {
  std::unique_lock lock(mutex_);
  if (!busy) news_.wait(lock, [&] { return stopped_ || !commands_.empty(); });
  inbox.clear();
  std::swap(inbox, commands_);
  submits_ = 0;
  return !stopped_;
}

void Mailbox::Publish(const EngineStats& stats) {
  const std::lock_guard lock(mutex_);
  stats_ = stats;
  queued_ = stats.waiting + submits_;
}

EngineStats Mailbox::stats() const {
  const std::lock_guard lock(mutex_);
  EngineStats stats = stats_;
  stats.waiting = queued_;
  return stats;
}

}  // namespace hidane::engine
