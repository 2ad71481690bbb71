#include "sim/scenario_agents.h"

#include <algorithm>
#include <string>
#include <utility>

namespace hidane::sim {
namespace {

constexpr AgentsLoad kLoads[] = {{"40", 30}, {"85", 64}, {"120", 90}, {"170", 128}};
constexpr uint64_t kKvTokens = 440'000;
constexpr Duration kThinkMax = std::chrono::seconds(30);

}  // namespace

std::span<const AgentsLoad> AgentsLoads() {
  return kLoads;
}

Result<AgentsLoad> FindAgentsLoad(std::string_view name) {
  for (const AgentsLoad& load : kLoads) {
    if (load.name == name) return load;
  }
  return Fail(Code::kInvalidArgument,
              "no phase " + std::string(name) + " of agents; there are 40, 85, 120 and 170",
              "phase");
}

ReplayRun AgentsRun(std::shared_ptr<const Trace> sessions, const AgentsLoad& load,
                    uint32_t replicas) {
  ReplayRun run;
  run.trace = std::move(sessions);
  run.replay.sessions = std::max(1u, load.sessions * replicas / kAgentsReplicas);
  run.replay.think_max = kThinkMax;
  run.replay.uncounted = 1.0 / 6;
  run.scenario = "agents";
  run.phase = load.name;
  run.replicas = replicas;
  run.kv_tokens = kKvTokens;
  return run;
}

}  // namespace hidane::sim
