#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "sim/bounds.h"
#include "sim/cluster.h"
#include "sim/gateway.h"
#include "sim/request.h"
#include "sim/row.h"
#include "sim/series.h"

namespace hidane::sim {

/// Watches a run and makes its row: the definitions of docs/simulator.md, "Measures". Each attempt
/// of a client counts as a request; its TTFT includes the attempts before. Not thread-safe.
class Measure {
 public:
  void OnSend(const Request& request, const Cluster& cluster, TimePoint now);
  /// It goes to its gateway, after so long in the admission line.
  void OnEnter(const Request& request, Duration wait);
  void OnFirstByte(uint64_t id, TimePoint now);
  void OnEnd(const Ending& ending, TimePoint now);

  uint64_t ended() const { return ended_; }

  /// Fills what was measured. Call at the run's end.
  void FillRow(const Cluster& cluster, Row& row) const;
  /// What finished when, added to the fleet's part of it, sampled before.
  Series MakeSeries(Duration step, std::vector<Series::Point> samples = {}) const;
  /// Of counted requests that succeeded, without waiting in the admission line; ascending.
  std::vector<double> SortedTtfts() const;
  /// Seconds from `change` until the hit ratio is back at 95 % of what it was before, for good.
  double RecoverySeconds(TimePoint change) const;

 private:
  struct Record {
    TimePoint arrival{}, first{}, end{};
    Duration before{};  // spent on earlier attempts
    Duration in_line{};
    uint64_t k1 = 0;
    uint32_t worker = 0;
    uint32_t known_tokens = 0;  // of the prompt: what an infinite cache would hold
    uint32_t prompt_tokens = 0, cached_tokens = 0, expected_cached = 0, output_tokens = 0;
    bool counted = false;
    bool ok = false;
    bool ended = false;
    Duration ttft_with_wait() const { return first - arrival + before; }
    Duration ttft() const { return ttft_with_wait() - in_line; }
    double tpot_s() const { return Seconds(end - first) / (output_tokens - 1); }
  };

  void FillTimes(Row& row) const;
  void FillRates(Row& row) const;
  void FillEngineTimes(const Cluster& cluster, Row& row) const;
  double LongestPrefill(const Cluster& cluster) const;
  void FillHomes(Row& row) const;

  std::vector<Record> records_;                            // in order of sending
  boost::unordered_flat_map<uint64_t, uint32_t> open_;     // id -> record
  std::vector<EngineTime> before_;                         // at the first counted sending
  std::optional<TimePoint> first_counted_, last_counted_;  // sendings
  HitBounds bounds_;
  uint64_t ended_ = 0;
};

}  // namespace hidane::sim
