#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "routing/health.h"

namespace hidane::routing {

/// A worker as configuration or discovery names it.
struct WorkerSpec {
  WorkerId id;
  std::string name;                 ///< stable over restarts (its address): the rendezvous key
  std::string model;                ///< serves only this model; empty = any
  uint64_t kv_capacity_tokens = 0;  ///< the operator's word; 0: telemetry's, until then Params'
  double prefill_tokens_per_s = 0;  ///< 0 = Params' until learned
};

/// What a scrape of the engine's metrics said; absent values change nothing.
struct Telemetry {
  std::optional<uint64_t> kv_capacity_tokens{};
  std::optional<uint32_t> running{};
  std::optional<uint32_t> waiting{};
  std::optional<double> start_time_s{};  ///< process start; a new value means an empty cache
};

/// One worker as `/hidane/workers` shows it.
struct WorkerView {
  WorkerId id;
  std::string name;
  std::string model;
  HealthState health = HealthState::kUp;
  bool draining = false;
  uint64_t kv_capacity_tokens = 0;
  uint64_t assigned_tokens = 0;  ///< static tokens of the prefixes at home here
  uint64_t indexed_tokens = 0;   ///< believed cached
  uint64_t indexed_blocks = 0;
  uint64_t index_bytes = 0;  ///< memory that this belief takes
  uint32_t prefixes = 0;     ///< at home here
  uint32_t in_flight = 0;    ///< routed and not done
  uint32_t running = 0;      ///< as the engine said last
  uint32_t waiting = 0;
  double wait_s = 0;  ///< unanswered prefill
  double prefill_tokens_per_s = 0;
  bool feedback = false;  ///< its answers carry cached_tokens
};

}  // namespace hidane::routing
