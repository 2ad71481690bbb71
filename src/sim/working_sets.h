#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <vector>

#include "admission/working_set.h"
#include "base/clock.h"
#include "sim/request.h"
#include "sim/row.h"

namespace hidane::sim {

/// Working-set admission in front of the simulated gateways. Requests are dealt to gateways
/// without regard to conversations, so each conversation has an owner among the gateways, by the
/// hash of its key; the owner alone says whether it is inside, and has an equal share of the
/// pool's memory to give. One gateway asks another once a turn, and no state is shared.
///
/// A conversation is what its prefix chain (K2) says, or, with `session_ids`, what its client says:
/// then one whose history is rewritten keeps its place. That a request belongs to a conversation
/// at all is taken from the workload: a gateway would learn it by prefix.
class WorkingSets {
 public:
  WorkingSets(const admission::Params& params, uint32_t gateways, uint64_t kv_tokens,
              bool session_ids = false);

  /// It may go, or waits until TakeLetIn names it, or is refused: its client would not wait so
  /// long.
  admission::Verdict Arrive(const Request& request, TimePoint now);
  /// It ended, or its client gave it up. Unknown ids are ignored.
  void Leave(uint64_t id, TimePoint now);
  void Tick(TimePoint now);
  /// Ids that waited and may go now. Empties the list.
  std::vector<uint64_t> TakeLetIn();

  /// A conversation that is expected no more for now, and the gateway that knows it.
  struct Left {
    uint32_t gateway;
    uint64_t k2;
  };
  /// Those since the last call.
  std::vector<Left> TakeLeft();

  /// Jain's index of the conversation-seconds inside by tenant, while somebody waited: 1 if all
  /// tenants had the same, 1 / n if one had all. NaN when nobody waited.
  double Fairness(TimePoint now) const;
  void FillRow(TimePoint now, Row& row) const;

 private:
  struct Open {
    uint32_t owner;
    admission::Ticket ticket;
    uint32_t own_tokens;  // when it is done
  };

  uint64_t KeyOf(const Request& request) const;
  uint32_t OwnerOf(uint64_t key) const;
  void Rename(uint64_t key, uint64_t k2);

  const uint32_t quantum_turns_;
  bool session_ids_;
  std::deque<admission::WorkingSet> sets_;            // by owner
  boost::unordered_flat_map<uint64_t, uint64_t> k2_;  // of a session: its latest
  std::vector<Left> left_;
  boost::unordered_flat_map<uint64_t, Open> open_;
  std::vector<boost::unordered_flat_map<uint64_t, uint64_t>> waiting_;  // by owner: ticket -> id
  std::vector<uint32_t> tenants_;                                       // seen, sorted
};

}  // namespace hidane::sim
