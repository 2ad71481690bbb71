#include "routing/failover.h"

namespace hidane::routing {

bool Failover::Allow(const Attempt& attempt, uint64_t fingerprint, TimePoint now) {
  const bool refused =
      attempt.outcome == Outcome::kConnectError || attempt.outcome == Outcome::kClosedEarly ||
      (attempt.outcome == Outcome::kBadGateway && attempt.elapsed_s <= params_.fast_answer_s);
  if (!refused || attempt.number != 1 || attempt.byte_sent || attempt.byte_received ||
      !attempt.body_kept) {
    return false;
  }
  if (const TimePoint* used = used_.Find(fingerprint);
      used != nullptr && Seconds(now - *used) < params_.remember_s) {
    return false;
  }
  used_.Touch(fingerprint) = now;
  return true;
}

}  // namespace hidane::routing
