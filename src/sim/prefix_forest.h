#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <vector>

#include "sim/request.h"

namespace hidane::sim {

/// All prompts of a workload laid over each other: tokens that prompts share are stored once, as
/// runs. A prompt is the path from a run up to the root; it takes from each run on it the tokens
/// up to the depth where the path leaves that run.
///
///     run 0  |---------------------| depth 27,000
///     run 1            `----------------|          leaves run 0 at depth 9,000
class PrefixForest {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// A place: `depth` tokens from the prompt's start, in `run`.
  struct Place {
    uint32_t run = kNone;  ///< kNone: the empty prompt
    uint32_t depth = 0;
  };
  struct Path {
    Place prompt_end;
    Place answer_end;    ///< = prompt_end where the request has no answer's blocks
    uint32_t known = 0;  ///< tokens of the prompt that came before
  };

  /// Lays a request's prompt and answer into the forest. O(log blocks + new blocks).
  Path Add(const Request& request);

  size_t runs() const { return parents_.size(); }
  Place parent(uint32_t run) const { return parents_[run]; }  ///< where the run begins

 private:
  boost::unordered_flat_map<uint64_t, Place> blocks_;  ///< by the block's hash: where it ends
  std::vector<Place> parents_;
};

}  // namespace hidane::sim
