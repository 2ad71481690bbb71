#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "base/json_out.h"

namespace hidane::sim {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// One result row of `hidane sim` (docs/simulator.md defines each column). Ratios are 0..1, times
/// virtual seconds; NaN = not known, JSON null.
struct Row {
  // What ran.
  std::string scenario, fleet, phase, policy;
  std::string working_set = "off";  ///< `on`, `off`
  std::string deltas = "on";        ///< `on`, `late`, `off`
  std::string keep_warm = "off";    ///< `on`, `off`
  std::string guard = "cancel";     ///< of a storm: `none`, `cancel`, `attach`
  uint32_t gateways = 1;
  // What came out.
  double requests = 0;  ///< counted ones, failed included
  double errors = 0;    ///< of them failed
  double hit_ratio = kUnknown;
  double hit_ratio_believed = kUnknown;  ///< by the router
  double hit_ratio_bound = kUnknown;
  double ttft_p50_s = kUnknown, ttft_p99_s = kUnknown;  ///< without waiting in the admission line
  double admission_wait_mean_s = 0, admission_wait_p99_s = 0;
  double ttft_with_wait_p99_s = kUnknown;
  double quantum_turns = kUnknown;     ///< of the working set; 0: no rotation
  double inside_fairness = kUnknown;   ///< Jain's index of tenants' time in the working set
  double makespan_bound_s = kUnknown;  ///< cold bursts: the first prefills balanced over the fleet
  double tpot_p50_s = kUnknown;
  double recompute_share = kUnknown, static_prefill_share = kUnknown;
  double goodput_rps = kUnknown, requests_per_s = kUnknown;
  double load_imbalance = kUnknown, load_imbalance_bound = kUnknown, mean_homes = kUnknown;
  double recovery_s = kUnknown;  ///< from the fleet's first change or a storm's end; 0: no dip
  double surge_rps = kUnknown,
         after_rps = kUnknown;          ///< answers to what was asked in a storm, after
  double answered_share = kUnknown;     ///< of what clients asked, at whichever try
  double sends_per_request = kUnknown;  ///< to engines, for each thing asked
  double refresh_share = kUnknown;      ///< of what gateways sent: their own, to keep prefixes warm
  double keys_moved = kUnknown;         ///< conversations' further requests that went elsewhere
  double keys_lost = kUnknown;          ///< those whose last worker had been lost
  // Of the machine: these differ from run to run or between builds.
  double decisions_per_s = kUnknown;        ///< wall clock
  double index_bytes = kUnknown;            ///< of what a gateway believes cached, at the end
  double index_bytes_per_entry = kUnknown;  ///< an entry is a block at a worker
};

/// A column that holds a number.
struct RowNumber {
  std::string_view key;
  double Row::* value;
};
std::span<const RowNumber> RowNumbers();

/// Appends `row` as one JSON object. `wall` = false leaves out what depends on the machine, so that
/// equal runs give equal text.
void AppendJson(const Row& row, JsonWriter& out, bool wall = true);

/// Several runs of one cell, each with a seed of its own.
struct Summary {
  Row mean;
  Row half_width;  ///< of the 95 % interval of each mean (Student's t); NaN with one run
  uint32_t seeds = 1;
};
/// REQUIRES: not empty. A number that is unknown in a run is unknown in the mean.
Summary Summarize(std::span<const Row> runs);
/// As a row of means with `seeds` and, where there are several, an object `half_width`.
void AppendJson(const Summary& summary, JsonWriter& out);

}  // namespace hidane::sim
