#pragma once
#include <cstdint>

#include "base/clock.h"
#include "base/ids.h"

namespace hidane::admission {

/// Who waits for whom: a class goes before all that follow it. Batch work has no deadline.
enum class Class : uint8_t { kInteractive, kDefault, kBatch };
inline constexpr size_t kClasses = 3;

/// What asks for a place in the working set: one turn of a conversation, or a single request.
struct Turn {
  uint64_t conversation = 0;   ///< key of its prefix chain; 0: a single request, gone when done
  uint64_t prefix = 0;         ///< key of the static prefix that it may share with others
  uint32_t prefix_tokens = 0;  ///< counted once while anybody inside uses it
  uint32_t own_tokens = 0;     ///< the context beyond the prefix
  uint32_t tenant = 0;
  double weight = 1;  ///< of the tenant, > 0
  Class cls = Class::kDefault;
  Duration patience = Duration::max();  ///< a longer wait in line is of no use to the client
};

/// One turn from its arrival until Done() or Cancel().
using Ticket = Strong<uint64_t, struct TicketTag>;

struct Verdict {
  enum class Kind : uint8_t {
    kGo,     ///< inside: send it
    kWait,   ///< in line: TakeLetIn() will name the ticket
    kRefuse  ///< the line is full, or longer than its patience; there is no ticket
  };
  Kind kind = Kind::kGo;
  Ticket ticket{};
  uint32_t position = 0;      ///< waiting: how many are likely to be let in before it
  Duration expected_wait{0};  ///< waiting or refused: an honest Retry-After
};

}  // namespace hidane::admission
