#pragma once
#include <cstdint>

#include "base/clock.h"
#include "routing/lru_map.h"

namespace hidane::routing {

/// How an attempt ended without an answer for the client.
enum class Outcome : uint8_t {
  kConnectError,
  kClosedEarly,  ///< EOF or reset
  kBadGateway,   ///< 502 or 503 answered
  kOther,        ///< timeouts, 4xx, 429, other 5xx: never retried
};

struct Attempt {
  Outcome outcome = Outcome::kOther;
  uint32_t number = 1;         ///< 1 = the first
  bool byte_sent = false;      ///< the client has had a byte of the answer
  bool byte_received = false;  ///< this connection gave a byte of an answer (its 502 aside)
  bool body_kept = true;       ///< the request can be sent again
  double elapsed_s = 0;        ///< since dispatch
};

struct FailoverParams {
  double fast_answer_s = 1;  ///< a 502 or 503 later than this was work, not refusal
  double remember_s = 120;
  uint32_t fingerprints_max = 65'536;
};

/// Whether an attempt may be made anew elsewhere: once, before the first byte, and once per
/// request fingerprint, so that a poison prompt meets two engines at most. Bounded; not
/// thread-safe.
class Failover {
 public:
  explicit Failover(const FailoverParams& params = {})
      : params_(params), used_(params.fingerprints_max) {}
  /// True uses up the fingerprint's one failover.
  bool Allow(const Attempt& attempt, uint64_t fingerprint, TimePoint now);

 private:
  FailoverParams params_;
  LruMap<TimePoint> used_;
};

}  // namespace hidane::routing
