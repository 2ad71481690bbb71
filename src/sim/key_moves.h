#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>

#include "sim/row.h"

namespace hidane::sim {

/// Counts how often a key (a conversation, K2) is served by another worker than the last time, and
/// how often that was because the worker had been lost. A leave should move the keys that lived
/// there and no others. Not thread-safe.
class KeyMoves {
 public:
  /// A worker and which of its lives: one that was lost and came back is another.
  struct Place {
    uint32_t worker = 0;
    uint64_t life = 0;
  };
  /// `here` serves `key`. `still_lives(place)`: the worker is up and in that life.
  template <class StillLives>
  void Serve(uint64_t key, Place here, StillLives&& still_lives) {
    const auto [at, is_new] = last_.try_emplace(key, here);
    if (is_new) return;
    const Place before = at->second;
    at->second = here;
    ++known_;
    const bool lost = !still_lives(before);
    lost_ += lost;
    moved_ += !lost && before.worker != here.worker;
  }

  /// `keys_moved`, `keys_lost`; unknown where no key came twice.
  void FillRow(Row& row) const;

 private:
  boost::unordered_flat_map<uint64_t, Place> last_;  // by key
  uint64_t known_ = 0, moved_ = 0, lost_ = 0;        // sights after the first; of them
};

}  // namespace hidane::sim
