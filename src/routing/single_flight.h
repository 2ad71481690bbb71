#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "routing/decision.h"

namespace hidane::routing {

/// Who waits for whose prefill: while one request computes a cold prefix on a worker, followers
/// with the same prefix wait for its first byte instead of computing the same blocks beside it.
/// Bounded by the requests under way. Not thread-safe.
class SingleFlight {
 public:
  explicit SingleFlight(uint32_t cold_tokens_min) : cold_tokens_min_(cold_tokens_min) {}

  /// How a request would fly. `cold_tokens`: shared tokens of k1 that `worker` does not hold yet.
  Flight Peek(uint64_t k1, WorkerId worker, uint32_t cold_tokens) const;
  /// REQUIRES: `flight` is what Peek says.
  void Join(Ticket ticket, uint64_t k1, WorkerId worker, Flight flight);
  /// The leader has its first byte: all followers may go.
  std::vector<Ticket> Landed(Ticket leader);
  /// The leader ended without one: the first follower goes and leads, the others keep waiting.
  std::vector<Ticket> Failed(Ticket leader);
  /// A follower goes anyway (its wait is over), or is gone. Leaders and others are ignored.
  void Leave(Ticket follower);

  bool Leads(Ticket ticket) const;
  size_t size() const { return flights_.size(); }

 private:
  struct Waiting {
    Ticket leader;
    std::vector<Ticket> followers;
  };
  static uint64_t Key(uint64_t k1, WorkerId worker);

  uint32_t cold_tokens_min_;
  boost::unordered_flat_map<uint64_t, Waiting> flights_;
  boost::unordered_flat_map<uint64_t, uint64_t> flight_of_;  // ticket -> key
};

}  // namespace hidane::routing
