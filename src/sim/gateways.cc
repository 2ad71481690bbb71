#include "sim/gateways.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/oracle.h"

namespace hidane::sim {
namespace {

constexpr std::string_view kOracle = "oracle";

Result<Gateway> MakeOne(const Gateway::Options& options, const Cluster& cluster, World& world) {
  if (options.policy != kOracle) return Gateway::Make(options, world);
  Gateway::Options product = options;
  product.policy = "prefix";
  HIDANE_TRY(Gateway gateway, Gateway::Make(product, world));
  gateway.router().SetPolicy(kOracle, [&cluster](const routing::Params&) {
    return MakeOracle(
        [&cluster](WorkerId id) -> const Engine& { return cluster.engine(id.value()); });
  });
  return gateway;
}

/// One in twenty of the fleet's slots, shared among the gateways.
size_t OrphansMax(const Setup& setup) {
  constexpr size_t kOneIn = 20;
  size_t slots = 0;
  for (const EngineOptions& engine : setup.engines) slots += engine.max_num_seqs;
  return std::max<size_t>(1, slots / kOneIn / setup.gateways);
}

}  // namespace

std::span<const std::string_view> SimPolicies() {
  static const std::vector<std::string_view> names = [] {
    const auto product = routing::Router::Policies();
    std::vector<std::string_view> all(product.begin(), product.end());
    all.push_back(kOracle);
    return all;
  }();
  return names;
}

Result<std::vector<Gateway>> MakeGateways(const Setup& setup, const Cluster& cluster,
                                          World& world) {
  if (setup.policy == kOracle && setup.gateways > 1) {
    return Fail(Code::kInvalidArgument, "the oracle is one gateway", "gateways");
  }
  Gateway::Options options{.params = setup.params,
                           .health = setup.health,
                           .policy = setup.policy,
                           .on_leave = setup.on_leave,
                           .orphans_max = OrphansMax(setup),
                           .wall = setup.wall};
  options.params.silent_peers = setup.gateways > 1 && setup.deltas == Deltas::kOff;
  std::vector<Gateway> gateways;
  for (uint32_t g = 0; g < setup.gateways; ++g) {
    options.params.replica = g;
    HIDANE_TRY(Gateway gateway, MakeOne(options, cluster, world));
    for (uint32_t w = 0; w < cluster.size(); ++w) {
      gateway.router().PutWorker(
          {.id = WorkerId(w), .name = "engine-" + std::to_string(w), .model = {}}, TimePoint{});
    }
    gateways.push_back(std::move(gateway));
  }
  return gateways;
}

void TellLeft(WorkingSets& sets, std::span<Gateway> gateways) {
  for (const auto& [gateway, k2] : sets.TakeLeft()) {
    gateways[gateway].router().LeaveConversation({}, k2);
  }
}

void FillIndexMemory(std::span<const Gateway> gateways, TimePoint now, Row& row) {
  double bytes = 0, entries = 0;
  for (const Gateway& gateway : gateways) {
    for (const routing::WorkerView& worker : gateway.router().Workers(now)) {
      bytes += static_cast<double>(worker.index_bytes);
      entries += static_cast<double>(worker.indexed_blocks);
    }
  }
  row.index_bytes = bytes / static_cast<double>(gateways.size());
  if (entries > 0) row.index_bytes_per_entry = bytes / entries;
}

void AddDecisions(std::span<const Gateway> gateways, Run& run) {
  Duration deciding{};
  for (const Gateway& gateway : gateways) {
    run.decisions += gateway.decisions();
    run.failovers += gateway.failovers();
    run.sent += gateway.sent();
    run.refreshes += gateway.refreshes();
    run.adopted += gateway.adopted();
    deciding += gateway.decision_time();
  }
  if (deciding > Duration{}) {
    run.row.decisions_per_s = static_cast<double>(run.decisions) / Seconds(deciding);
  }
}

}  // namespace hidane::sim
