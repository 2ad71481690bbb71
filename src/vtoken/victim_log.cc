#include "vtoken/victim_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace hidane::vtoken {

void VictimLog::Record(const SequenceKv& seq, std::span<const uint32_t> slots) {
  const size_t each = slots.size() / seq.shape().units;
  HIDANE_ASSERT(each * seq.shape().units == slots.size());
  starts_.push_back({seq.logical_length(), tokens_.size()});
  for (size_t i = 0; i < slots.size(); ++i) {
    tokens_.push_back(seq.token(static_cast<uint32_t>(i / each), slots[i]));
  }
}

VictimLog::Round VictimLog::round(uint32_t index) const {
  HIDANE_ASSERT(index < starts_.size());
  const uint64_t first = starts_[index].first;
  const uint64_t end = index + 1 < starts_.size() ? starts_[index + 1].first : tokens_.size();
  return {starts_[index].logical_length, std::span(tokens_).subspan(first, end - first)};
}

Result<std::vector<uint32_t>> SlotsOf(const SequenceKv& seq, std::span<const uint32_t> tokens) {
  const uint32_t units = seq.shape().units;
  const size_t each = tokens.size() / units;
  std::vector<uint32_t> slots(each * units);
  std::vector<std::pair<uint32_t, uint32_t>> order(seq.active_length() + 1);
  for (uint32_t u = 0; u < units; ++u) {
    order.clear();
    for (uint32_t slot = 0; slot <= seq.active_length(); ++slot) {
      if (seq.live(u, slot)) order.emplace_back(seq.token(u, slot), slot);
    }
    std::sort(order.begin(), order.end());
    for (size_t i = u * each; i < (u + 1) * each; ++i) {
      const auto at = std::lower_bound(order.begin(), order.end(), std::pair(tokens[i], 0u));
      if (at == order.end() || at->first != tokens[i]) {
        return Fail(Code::kInvalidArgument,
                    fmt::format("token {} does not live in unit {}", tokens[i], u));
      }
      slots[i] = at->second;
    }
  }
  return slots;
}

}  // namespace hidane::vtoken
