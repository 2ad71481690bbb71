#pragma once
#include <cstdint>

namespace hidane::routing {

/// Every knob of routing, with its default. docs/placement.md holds the same table in words.
struct Params {
  uint32_t replica = 0;  ///< this gateway's id among those that share a fleet
  uint64_t seed = 1;     ///< of policies that draw lots

  /// Other gateways steer the same workers and tell this one nothing, nor it them: then only what
  /// all of them see alike, hashes and memory, says where prefixes live.
  bool silent_peers = false;

  // Memory of a worker.
  uint64_t kv_capacity_tokens = 400'000;  ///< assumed until the engine or the operator says
  double fill = 0.9;                      ///< share of the capacity that may be assigned
  double running_reserve = 0.07;          ///< share kept free for running requests until measured

  // Where a prefix lives.
  uint32_t first_sight_choices = UINT32_MAX;  ///< workers compared for a new prefix; all that fit
  double headroom = 1.25;                     ///< homes per share of load
  double spare_headroom = 4;                  ///< the same where memory is to spare
  double spare_mark = 0.7;  ///< assigned share of memory up to which spare homes are given
  double share_halflife_s = 120;
  double share_requests_min = 1500;  ///< a half-life lasts at least so many requests
  double grow_after_s = 20;          ///< a wish for more homes must last so long
  double rebalance_every_s = 1;
  double idle_release_s = 600;     ///< a prefix unused so long makes way where none fits
  uint32_t prefixes_max = 65'536;  ///< table bound; the least recently used leaves

  bool keep_warm = false;  ///< prefixes at home are refreshed before engines evict them

  // Which home.
  double short_k1_s = 0.05;              ///< a prefix recomputed faster lives everywhere
  double near_tie_s = 0.005;             ///< difference in predicted TTFT that counts as equal
  double near_tie_share = 0.1;           ///< of the prefill, added to it: learned rates are noisy
  uint32_t compare_max = 16;             ///< candidates where every worker is a home
  double prefill_tokens_per_s = 10'000;  ///< until learned
  double prefill_chunk_tokens = 8'192;
  uint32_t output_tokens = 128;  ///< expected answer where the request sets no bound
  uint32_t conversations_max = 262'144;
  uint32_t fixed_hash_tokens = 512;  ///< head that the policy `fixed_hash` hashes

  // Single flight.
  uint32_t single_flight_tokens = 2'048;  ///< cold shared tokens from which followers wait
  double single_flight_slack = 2.0;       ///< they wait at most so many times the prediction

  friend bool operator==(const Params&, const Params&) = default;
};

/// Differences in predicted TTFT that count as equal, where a prefill of so many seconds is in it.
inline double NearTie(double prefill_s, const Params& params) {
  return params.near_tie_s + params.near_tie_share * prefill_s;
}

}  // namespace hidane::routing
