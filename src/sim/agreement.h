#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "routing/delta.h"
#include "sim/agenda.h"
#include "sim/gateway.h"

namespace hidane::sim {

/// How gateways share where prefixes live.
enum class Deltas : uint8_t {
  kOn,    ///< at once
  kLate,  ///< a second later
  kOff,
};
std::string_view Name(Deltas deltas);  ///< `on`, `late`, `off`

/// The wire between gateways: carries each one's changes of home to all others. Not thread-safe.
class Agreement {
 public:
  explicit Agreement(Deltas deltas) : deltas_(deltas) {}

  /// Call after each event: takes what the gateways changed, and tells the others or plans to.
  void Collect(std::span<Gateway> gateways, Agenda& agenda, TimePoint now);
  /// A planned batch arrives.
  void Deliver(uint64_t batch, std::span<Gateway> gateways, TimePoint now);

 private:
  struct Batch {
    size_t from;
    std::vector<routing::Delta> deltas;
  };
  static void Tell(const Batch& batch, std::span<Gateway> gateways, TimePoint now);

  Deltas deltas_;
  std::map<uint64_t, Batch> on_the_way_;
  uint64_t next_ = 0;
};

}  // namespace hidane::sim
