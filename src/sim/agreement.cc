#include "sim/agreement.h"

#include <utility>

namespace hidane::sim {
namespace {

constexpr Duration kLateBy = std::chrono::seconds(1);

}  // namespace

std::string_view Name(Deltas deltas) {
  switch (deltas) {
    case Deltas::kOn:
      return "on";
    case Deltas::kLate:
      return "late";
    case Deltas::kOff:
      return "off";
  }
  return "";
}

void Agreement::Collect(std::span<Gateway> gateways, Agenda& agenda, TimePoint now) {
  if (deltas_ == Deltas::kOff || gateways.size() < 2) return;
  for (size_t g = 0; g < gateways.size(); ++g) {
    Batch batch{g, gateways[g].router().TakeDeltas()};
    if (batch.deltas.empty()) continue;
    if (deltas_ == Deltas::kOn) {
      Tell(batch, gateways, now);
    } else {
      agenda.Push(now + kLateBy, {.kind = Event::Kind::kDeltas, .id = next_});
      on_the_way_.emplace(next_++, std::move(batch));
    }
  }
}

void Agreement::Deliver(uint64_t batch, std::span<Gateway> gateways, TimePoint now) {
  const auto at = on_the_way_.find(batch);
  Tell(at->second, gateways, now);
  on_the_way_.erase(at);
}

void Agreement::Tell(const Batch& batch, std::span<Gateway> gateways, TimePoint now) {
  for (size_t g = 0; g < gateways.size(); ++g) {
    if (g == batch.from) continue;
    for (const routing::Delta& delta : batch.deltas) gateways[g].router().Merge(delta, now);
  }
}

}  // namespace hidane::sim
