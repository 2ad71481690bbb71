#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>

#include "base/clock.h"

namespace hidane::routing {

/// What one request costs its worker, fixed when it is routed.
struct Cost {
  double prefill_s = 0;         ///< of its uncached tokens
  uint32_t own_tokens = 0;      ///< KV beside the static prefix: the rest of the prompt, the answer
  uint32_t lasting_tokens = 0;  ///< of them, those that an account holds for longer than it runs
  uint64_t k1 = 0;
  uint32_t k1_tokens = 0;
  uint32_t context_tokens = 0;  ///< what each of its decode steps reads
};

/// Work given to one worker and not yet done, counted when it is routed: scraped load is stale,
/// and gateways that steer by it herd. Each Add ends in one Done, with or without Answered.
/// Not thread-safe.
class Ledger {
 public:
  /// `age`: now, in the half-lives by which recent work fades.
  void Add(const Cost& cost, TimePoint now, double age);
  void Answered(const Cost& cost, TimePoint now);  ///< its first byte came
  void Done(const Cost& cost, bool answered, double lived_s, TimePoint now);
  void Progress(TimePoint now) { last_progress_ = now; }  ///< some byte came

  /// Seconds of prefill not yet answered. The one under way is credited with the time since
  /// the last answer, at most with what one request costs on average.
  double wait_s(TimePoint now) const;
  /// Seconds of prefill given to it of late: a sum that fades by half in each half-life.
  double recent_prefill_s(double age) const;
  /// KV tokens of the requests under way, each static prefix once.
  uint64_t running_tokens() const { return own_tokens_ + shared_tokens_; }
  /// KV tokens that no account holds: what the running reserve is for.
  uint64_t passing_tokens() const { return passing_tokens_; }
  /// Tokens that a decode step reads: of all requests under way, shared prefixes each time.
  uint64_t context_tokens() const { return context_tokens_; }
  bool Runs(uint64_t k1) const { return running_k1_.contains(k1); }
  uint32_t in_flight() const { return in_flight_; }
  uint32_t unanswered() const { return unanswered_; }
  /// How long a request lives, smoothed; how fast KV comes free.
  double mean_life_s() const { return mean_life_s_; }
  TimePoint last_progress() const { return last_progress_; }

 private:
  struct Shared {
    uint32_t requests = 0;
    uint32_t tokens = 0;
  };
  boost::unordered_flat_map<uint64_t, Shared> running_k1_;
  double pending_s_ = 0;
  uint32_t unanswered_ = 0;
  uint32_t in_flight_ = 0;
  uint64_t own_tokens_ = 0;
  uint64_t passing_tokens_ = 0;
  uint64_t shared_tokens_ = 0;
  uint64_t context_tokens_ = 0;
  double mean_life_s_ = 1;
  double recent_prefill_s_ = 0;  // as of `recent_age_`
  double recent_age_ = 0;
  TimePoint prefill_since_{};  // the prefill under way began about then
  TimePoint last_progress_{};
};

/// The 95th percentile of what running requests hold beside static prefixes, by small steps
/// (frugal streaming: Ma, Muthukrishnan and Sandler 2013, arXiv 1407.1121). Until
/// kSamplesMin were seen it is the share of the capacity that Params gives.
class RunningReserve {
 public:
  void Observe(uint64_t own_tokens, uint64_t capacity_tokens);
  uint64_t Tokens(uint64_t capacity_tokens, double share_until_measured) const;

 private:
  static constexpr uint32_t kSamplesMin = 64;
  double tokens_ = 0;
  uint32_t samples_ = 0;
};

}  // namespace hidane::routing
