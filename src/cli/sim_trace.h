#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/sim_jobs.h"
#include "sim/scenario_replay.h"

namespace CLI {
class App;
}

namespace hidane::cli {

/// What `hidane sim` is told about a trace, beside what every scenario is told.
struct TraceOptions {
  std::string file;
  bool describe = false;
  std::vector<uint32_t> replicas;  ///< empty: the scenario's own
  std::vector<uint64_t> kv_tokens;
  uint32_t overlay = 1, sessions = 64;
  double time_scale = 1;
  double think_max_s = 0;  ///< longer think times of a trace's sessions are cut; 0: none
  double churn_s = 0;      ///< a replica is lost so often; 0: none
  std::string clients = "patient";
};
void AddTraceOptions(CLI::App& command, TraceOptions& options);

/// What every scenario is told.
struct CommonOptions {
  std::vector<std::string> policies;
  std::vector<uint32_t> gateways;
  sim::Deltas deltas = sim::Deltas::kOn;
  std::string gpu;
  routing::Params params;                            ///< of the gateways
  sched::Eviction eviction = sched::Eviction::kLru;  ///< of the engines
  uint64_t seed = 1;
  uint32_t seeds = 1;
  uint64_t requests = 0;                  ///< 0: the scenario's own
  std::vector<std::string> working_sets;  ///< `on`, `off`; empty: `off`
  std::vector<uint32_t> quantums = {20};  ///< where it is on; 0: no rotation
  bool session_ids = false;               ///< where it is on
};

/// The kinds of admission that are asked for; nullopt: none.
std::vector<std::optional<admission::Params>> AdmissionsOf(const CommonOptions& common);

template <class T>
std::vector<T> OrOne(std::vector<T> values, T otherwise) {
  if (values.empty()) values.push_back(std::move(otherwise));
  return values;
}

/// The file's requests: for each number of replicas, memory, number of gateways and policy.
Result<std::vector<SimCell>> TraceCells(const TraceOptions& options, const CommonOptions& common);
/// Agent sessions, generated or drawn from the file: for each phase (empty: all), and so on.
Result<std::vector<SimCell>> AgentsCells(const TraceOptions& options,
                                         const std::vector<std::string>& phases,
                                         const CommonOptions& common);

/// What the file holds, for `--describe`.
Result<std::string> DescribeTrace(const TraceOptions& options);

}  // namespace hidane::cli
