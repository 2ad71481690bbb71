#pragma once
#include <list>
#include <vector>

#include "admission/tenant_share.h"
#include "admission/turn.h"

namespace hidane::admission {

/// A conversation (or single request) that is inside or in line. Private to the room.
struct Member {
  uint64_t key = 0;  ///< 0: a single request
  uint64_t prefix = 0;
  uint32_t prefix_tokens = 0;
  uint32_t own_tokens = 0;
  Class cls = Class::kDefault;
  TenantShare* tenant = nullptr;
  bool inside = false;

  TimePoint since{};            ///< in line since
  std::vector<Ticket> waiting;  ///< turns in line, by arrival

  bool ended = false;     ///< no further turn will come
  uint32_t running = 0;   ///< turns under way
  uint32_t turns = 0;     ///< begun since it was let in
  TimePoint last_end{};   ///< of its last turn
  Duration usual_gap{0};  ///< between its turns, the longest of late
  std::list<std::list<Member>::iterator>::iterator entered{};  ///< its place in the order of entry

  uint32_t context() const { return prefix_tokens + own_tokens; }
};

}  // namespace hidane::admission
