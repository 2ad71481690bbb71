#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "routing/accounts.h"
#include "routing/delta_log.h"
#include "routing/lru_map.h"
#include "routing/params.h"

namespace hidane::routing {

/// Where conversations (K2) live, and what their histories take of each worker's memory.
///
/// Most prompts come once: their tokens are what running requests hold, and no account counts
/// them. A conversation counts from the turn that shows that it grows (its K2 with a history
/// behind it), or from its first turn where the prefix's conversations usually go on. Between
/// turns it is held for as long as turns usually take; then its tokens leave the account, and
/// only where it lived is remembered.
///
/// Deterministic. Bounded by Params::conversations_max. Not thread-safe. O(1) per call.
class Conversations {
 public:
  /// REQUIRES: both outlive this.
  Conversations(const Params& params, Accounts& accounts, DeltaLog& log);

  struct Talk {
    uint64_t k1 = 0;
    uint64_t worker = 0;  ///< key of the one that served it last
    Stamp stamp;          ///< of `worker`, as gateways tell each other
    uint32_t tokens = 0;  ///< behind the static prefix, at its last turn
    bool counted = false;
    TimePoint seen{};
  };
  /// nullptr: never seen, or long ago.
  const Talk* Find(uint64_t k2) const;

  struct Turn {
    uint64_t k1 = 0;
    uint64_t k2 = 0;
    uint64_t worker = 0;       ///< key of the one that serves it
    uint32_t tokens = 0;       ///< of the prompt behind its static prefix
    bool has_history = false;  ///< the prompt goes on behind its first user message
  };
  /// Call once for each request that is dispatched.
  void Serve(const Turn& turn, TimePoint now);

  /// New conversations of this prefix usually go on.
  bool GoOn(uint64_t k1) const { return UsualOf(k1).goes_on >= 0.5; }
  /// Tokens that a conversation of this prefix usually has behind it.
  uint32_t UsualTokens(uint64_t k1) const { return static_cast<uint32_t>(UsualOf(k1).tokens); }
  /// Some counted conversation of prefix `k1` lives there.
  bool LiveAt(uint64_t k1, uint64_t worker) const { return live_.contains(Pair(k1, worker)); }

  /// No turn is expected of it for now: it leaves the account at once, and others hear of it.
  void Leave(uint64_t k2);
  /// Takes the ones out of the accounts that are not heard of any more. About once a second.
  void Release(TimePoint now);
  double idle_s() const;  ///< how long one is held
  /// A worker has an account again, or for the first time: the ones that live there count.
  void OnJoined(uint64_t worker);

  /// REQUIRES: a kConversation. True: it is news.
  bool Merge(const Delta& delta, TimePoint now);
  void AppendSnapshot(std::vector<Delta>& out) const;

  size_t size() const { return counted_.size() + remembered_.size(); }

 private:
  struct Usual {  // averages over the requests of a prefix
    double goes_on = 0;
    double tokens = 0;
    uint32_t samples = 0;
  };
  static uint64_t Pair(uint64_t k1, uint64_t worker);
  const Usual& UsualOf(uint64_t k1) const;
  void Learn(uint64_t k1, bool goes_on, uint32_t tokens);
  void LearnGap(double gap_s);
  void Count(const Talk& talk, bool add);
  void Put(uint64_t k2, const Talk& talk);
  void Drop(uint64_t k2, const Talk& talk);
  void Remember(uint64_t k2, Talk talk);
  void Tell(uint64_t k2, Talk& talk, uint32_t tokens);

  Accounts& accounts_;
  DeltaLog& log_;
  LruMap<Talk> counted_;     // in the accounts
  LruMap<Talk> remembered_;  // only where they were
  LruMap<Usual> usual_;      // by K1
  Usual usual_of_all_;
  boost::unordered_flat_map<uint64_t, uint32_t> live_;  // counted conversations by K1 and worker
  double gap_s_ = 30;                                   // 95th percentile between turns
};

}  // namespace hidane::routing
