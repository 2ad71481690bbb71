#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "gateway/config.h"
#include "gateway/decision_log.h"
#include "gateway/fleet.h"
#include "gateway/metrics.h"
#include "gateway/static_parts.h"
#include "net/address.h"
#include "obs/metrics.h"

namespace hidane::gateway {

/// What all loops of one gateway share. Every part is thread-safe or constant.
struct Context {
  Context(std::unique_ptr<Config> c, std::vector<net::Address> a, const Clock& k)
      : config(std::move(c)),
        addresses(std::move(a)),
        clock(k),
        metrics(registry),
        fleet(*config, k),
        decisions(static_cast<size_t>(config->limits_decisions_kept())),
        statics(static_cast<size_t>(config->limits_static_bytes_max())) {}

  const std::unique_ptr<const Config> config;
  const std::vector<net::Address> addresses;  ///< of the engines, by WorkerId
  const Clock& clock;
  obs::Registry registry;
  Metrics metrics;
  Fleet fleet;
  DecisionLog decisions;
  StaticParts statics;  ///< with `routing.keep_warm`
  std::atomic<bool> draining{false};
  std::atomic<int64_t> in_flight{0};  ///< requests that a handler has, on all loops
  std::atomic<int> probes{0};         ///< coroutines of Probes and KeepWarm that run
};

}  // namespace hidane::gateway
