#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engine/engine.h"

namespace hidane::engine {

struct SubmitCommand {
  SeqId id;
  Request request;
  Sink sink;
  TimePoint submitted;
};
struct CancelCommand {
  SeqId id;
  std::optional<uint32_t> choice;  ///< absent: all of them
};
struct ResetCommand {};
struct ReadKvCommand {
  std::function<void(KvMap)> done;
};
using Command = std::variant<SubmitCommand, CancelCommand, ResetCommand, ReadKvCommand>;

/// What the other threads tell the engine thread, in order, and the stats that it shows them.
/// Thread-safe; nobody waits for a step, only the engine thread waits, for work.
class Mailbox {
 public:
  Mailbox(uint32_t max_queue, const EngineStats& stats) : max_queue_(max_queue), stats_(stats) {}

  /// The request's id is its first choice's; the others have those behind it.
  /// kResourceExhausted when max_queue requests wait.
  Result<SeqId> Submit(Request request, Sink sink, TimePoint now);
  void Post(Command command);
  void Stop();

  /// Moves all commands into `inbox`; waits for one unless `busy`. False once stopped.
  bool Take(bool busy, std::vector<Command>& inbox);
  void Publish(const EngineStats& stats);
  EngineStats stats() const;

 private:
  const uint32_t max_queue_;
  mutable std::mutex mutex_;
  std::condition_variable news_;
  std::vector<Command> commands_;
  EngineStats stats_;     // as published
  uint32_t queued_ = 0;   // waiting as published, and submitted since
  uint32_t submits_ = 0;  // among commands_
  uint64_t next_id_ = 1;
  bool stopped_ = false;
};

}  // namespace hidane::engine
