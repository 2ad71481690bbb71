#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <memory>
#include <queue>
#include <vector>

#include "sim/trace.h"
#include "sim/workload.h"

namespace hidane::sim {

struct ReplayOptions {
  uint64_t seed = 1;
  uint32_t tenants = 16;   ///< that sessions without one are dealt to, by seed
  double time_scale = 1;   ///< > 0: 2 sends in half the time; think times shrink alike
  uint32_t overlay = 1;    ///< >= 1: copies that share no text, turned against each other in time
  uint64_t requests = 0;   ///< no session begins after so many; 0: no bound
  uint32_t sessions = 64;  ///< at a time, of a trace without times; a new one when one ends
  Duration think_max = Duration::max();  ///< longer think times are cut to it
  /// Share of the requests that warm up. If > 0, of a trace without times also those are not
  /// counted that are sent after the last session began: ever fewer clients are at work then.
  double uncounted = 0;
};

/// Sends what a trace holds.
///
/// Times: a session's first turn is sent at its time (open loop) or, in a trace without times, when
/// a place is free. Every later turn waits for the answer to the one before and its think time, and
/// is never sent before its own time.
///
/// Copies: copy c of n begins c/n into the trace and ends with what comes before that.
/// Order: as the trace has it; sessions without times are shuffled by seed.
/// Answers: where the next prompt goes on with the answer, its blocks are told to the engine.
class TraceReplay final : public Workload {
 public:
  /// REQUIRES: options in their ranges, `trace` not empty.
  TraceReplay(std::shared_ptr<const Trace> trace, const ReplayOptions& options);
  std::string_view name() const override { return NameOf(trace_->format); }
  std::optional<Request> Next() override;
  std::optional<Request> After(const Finished& done, TimePoint now) override;
  /// Requests in all, each counted once however often it is tried.
  uint64_t requests() const { return total_; }

 private:
  /// A session of a copy that goes on.
  struct Client {
    uint32_t session = 0;
    uint32_t turn = 0;  // the next to be sent
    Duration shift{};   // of the copy's times against the trace's
    uint32_t tenant = 0;
    PromptBuilder prompt;  // of `turn`
  };
  /// A copy's place in the trace.
  struct Cursor {
    TimePoint at{};
    uint32_t copy = 0;
    uint32_t begun = 0;  // sessions
    bool operator>(const Cursor& other) const {
      return at != other.at ? at > other.at : copy > other.copy;
    }
  };

  std::optional<Request> NextTimed();
  /// The next session in shuffled order; nullopt: all have begun.
  std::optional<Request> Begin(TimePoint now);
  Request Open(uint32_t copy, uint32_t session, Duration shift, TimePoint at);
  /// The client's turn, and moves the client to the one after it.
  Request Send(Client& client, uint64_t conversation, TimePoint at);
  TimePoint Scaled(Duration at) const;
  /// The n-th session that a copy begins, and when.
  struct Start {
    uint32_t session;
    Duration shift;
    TimePoint at;
  };
  Start StartOf(uint32_t copy, uint32_t n) const;
  bool Enough() const { return options_.requests > 0 && sent_ >= options_.requests; }

  std::shared_ptr<const Trace> trace_;
  ReplayOptions options_;
  Duration duration_{};
  uint64_t total_ = 0, sent_ = 0;
  std::vector<uint64_t> order_;  // copy * sessions + session, of a trace without times
  size_t begun_ = 0;
  std::priority_queue<Cursor, std::vector<Cursor>, std::greater<>> cursors_;
  boost::unordered_flat_map<uint64_t, Client> clients_;  // by conversation
};

}  // namespace hidane::sim
