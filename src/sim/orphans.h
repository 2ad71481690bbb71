#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace hidane::sim {

/// What becomes of a request under way whose client leaves before its first byte.
enum class OnLeave : uint8_t {
  kRunOn,   ///< the engine never learns that nobody waits for it
  kCancel,  ///< the engine drops it
  kAttach,  ///< it goes on for a while, and the client's retry finds it
};

/// Runs without a client, which an identical retry may adopt: docs/simulator.md, "A storm". One
/// that has its answer waits longer, as it costs nothing. The oldest makes place for a new one.
/// Not thread-safe. O(runs) a call.
class Orphans {
 public:
  struct Options {
    Duration grace = std::chrono::milliseconds(1'500);  ///< of one that still computes
    Duration keep = std::chrono::seconds(30);           ///< of one that has its answer
    size_t most = 64;                                   ///< >= 1
  };
  explicit Orphans(const Options& options) : options_(options) {}

  /// `run`'s client has left. Returns the run that has to go for it.
  std::optional<uint64_t> Add(uint64_t fingerprint, uint64_t run, TimePoint now);
  /// The run's answer is complete.
  void Answered(uint64_t run, TimePoint now);
  /// The run that the retry of this request takes over.
  std::optional<uint64_t> Adopt(uint64_t fingerprint);
  /// The run broke.
  void Forget(uint64_t run);
  /// Runs that nobody came for in time; forgets them.
  std::vector<uint64_t> TakeOverdue(TimePoint now);

 private:
  struct Orphan {
    uint64_t fingerprint;
    uint64_t run;
    TimePoint until;
  };
  Options options_;
  std::deque<Orphan> orphans_;  // by age
};

}  // namespace hidane::sim
