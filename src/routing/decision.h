#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace hidane::routing {

/// One routed request, from Route to OnDone.
using Ticket = Strong<uint64_t, struct TicketTag>;

/// Why a worker was chosen.
enum class Rule : uint8_t {
  kHome,      ///< the prefix's only home
  kBalance,   ///< the home with the least predicted TTFT
  kSticky,    ///< the home that holds the conversation, on a near tie
  kPlaced,    ///< this is its home from now on, or again, and computes it first
  kFailover,  ///< every home is out
  kOnly,      ///< no other worker could be asked
  kRefresh,   ///< the gateway's own, to keep the prefix cached at its home
  kPolicy,    ///< a policy other than `prefix`
};
std::string_view Name(Rule rule);  ///< `home`, `balance`, ...: the header's and metrics' word

/// Predicted seconds to the first token, by term.
struct Ttft {
  double wait = 0;          ///< uncached prefill dispatched before and not yet answered
  double prefill = 0;       ///< this request's uncached tokens
  double interference = 0;  ///< decode steps of the residents between the chunks
  double kv_wait = 0;       ///< until running requests leave room
  double total() const { return wait + prefill + interference + kv_wait; }
};

struct Candidate {
  WorkerId worker;
  uint32_t cached_tokens = 0;  ///< believed
  Ttft ttft;
  double decode_s = 0;          ///< predicted, of the answer, beside those who are there
  double recent_prefill_s = 0;  ///< prefill given to it of late, fading: decides between equals
};

/// Whether the request may go at once.
enum class Flight : uint8_t {
  kGo,      ///< dispatch now
  kLead,    ///< dispatch now; others wait for this one's first byte
  kFollow,  ///< wait until Router releases the ticket, at most `wait_s`
};
std::string_view Name(Flight flight);  ///< `go`, `lead`, `follow`

/// A routed request, with what decided: a value, printed elsewhere.
struct Decision {
  Ticket ticket;
  WorkerId worker;
  Rule rule = Rule::kPolicy;
  Flight flight = Flight::kGo;
  double wait_s = 0;             ///< kFollow: the longest wait
  uint32_t prompt_tokens = 0;    ///< estimated from bytes
  uint32_t expected_cached = 0;  ///< tokens, on `worker`
  Ttft ttft;                     ///< on `worker`
  uint64_t k1 = 0;
  uint32_t k1_tokens = 0;
  std::vector<Candidate> candidates;  ///< those compared, the chosen one among them
};

/// Appends the decision as one JSON object (what `/hidane/decisions` streams).
void AppendJson(const Decision& decision, std::string& out);

/// Expected minus actual, when the answer's usage is known.
struct Regret {
  int64_t cached_tokens = 0;
  double ttft_s = 0;
};

}  // namespace hidane::routing
