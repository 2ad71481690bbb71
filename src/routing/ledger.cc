#include "routing/ledger.h"

#include <algorithm>

#include "routing/half_lives.h"

namespace hidane::routing {

void Ledger::Add(const Cost& cost, TimePoint now, double age) {
  if (unanswered_ == 0) prefill_since_ = last_progress_ = now;
  pending_s_ += cost.prefill_s;
  recent_prefill_s_ = recent_prefill_s(age) + cost.prefill_s;
  recent_age_ = age;
  ++unanswered_;
  ++in_flight_;
  own_tokens_ += cost.own_tokens;
  context_tokens_ += cost.context_tokens;
  passing_tokens_ += cost.own_tokens - cost.lasting_tokens;
  Shared& shared = running_k1_[cost.k1];
  if (shared.requests++ == 0) {
    shared.tokens = cost.k1_tokens;
    shared_tokens_ += shared.tokens;
  }
}

void Ledger::Answered(const Cost& cost, TimePoint now) {
  --unanswered_;
  pending_s_ = unanswered_ == 0 ? 0 : std::max(0.0, pending_s_ - cost.prefill_s);
  prefill_since_ = last_progress_ = now;
}

void Ledger::Done(const Cost& cost, bool answered, double lived_s, TimePoint now) {
  if (!answered) {
    const TimePoint before = last_progress_;
    Answered(cost, now);
    last_progress_ = before;  // an abandoned request is no sign of life
  } else {
    mean_life_s_ += 0.05 * (lived_s - mean_life_s_);
  }
  --in_flight_;
  own_tokens_ -= cost.own_tokens;
  context_tokens_ -= cost.context_tokens;
  passing_tokens_ -= cost.own_tokens - cost.lasting_tokens;
  const auto at = running_k1_.find(cost.k1);
  if (--at->second.requests == 0) {
    shared_tokens_ -= at->second.tokens;
    running_k1_.erase(at);
  }
}

double Ledger::wait_s(TimePoint now) const {
  if (unanswered_ == 0) return 0;
  const double underway = std::max(0.0, Seconds(now - prefill_since_));
  return pending_s_ - std::min(underway, pending_s_ / unanswered_);
}

double Ledger::recent_prefill_s(double age) const {
  return Faded(recent_prefill_s_, recent_age_, age);
}

void RunningReserve::Observe(uint64_t own_tokens, uint64_t capacity_tokens) {
  constexpr double kQuantile = 0.95;
  const double step = static_cast<double>(capacity_tokens) * 0.002;
  const auto own = static_cast<double>(own_tokens);
  if (samples_++ == 0) tokens_ = own;
  tokens_ += own > tokens_ ? step * kQuantile : -step * (1 - kQuantile);
  tokens_ = std::max(tokens_, 0.0);
}

uint64_t RunningReserve::Tokens(uint64_t capacity_tokens, double share_until_measured) const {
  const auto capacity = static_cast<double>(capacity_tokens);
  if (samples_ < kSamplesMin) return static_cast<uint64_t>(capacity * share_until_measured);
  constexpr double kShareMax = 0.5;  // so much may running requests take from the prefixes
  return static_cast<uint64_t>(std::min(tokens_, capacity * kShareMax));
}

}  // namespace hidane::routing
