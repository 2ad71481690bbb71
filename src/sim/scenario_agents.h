#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "sim/agents.h"
#include "sim/scenario_replay.h"

namespace hidane::sim {

/// How many agents are at work: a phase of the table, named by the share of the fleet's KV memory
/// that their contexts take.
struct AgentsLoad {
  std::string_view name;  ///< percent
  uint32_t sessions;      ///< at a time, on 16 replicas; other fleets in proportion
};
std::span<const AgentsLoad> AgentsLoads();  ///< 40, 85, 120, 170
/// kInvalidArgument (param `phase`), naming those there are.
Result<AgentsLoad> FindAgentsLoad(std::string_view name);

inline constexpr uint32_t kAgentsReplicas = 16;

/// Sessions of 16 tenants on replicas of 440k KV tokens: a new session begins when one ends, nobody
/// thinks longer than 30 s, the first sixth of the requests warms up.
ReplayRun AgentsRun(std::shared_ptr<const Trace> sessions, const AgentsLoad& load,
                    uint32_t replicas = kAgentsReplicas);

}  // namespace hidane::sim
