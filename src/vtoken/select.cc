#include "vtoken/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/assert.h"

namespace hidane::vtoken {

uint32_t ScoreKey(float score) {
  if (std::isnan(score)) return 0;
  constexpr int kDropped = 24 - kScoreBits;  // of a float's 24 significant bits
  constexpr uint32_t kSign = 0x8000'0000u;
  const uint32_t bits = std::bit_cast<uint32_t>(score);
  // Magnitudes of floats sort as integers, so a carry out of the fraction rounds up correctly.
  const uint32_t magnitude =
      std::isinf(score) ? bits & ~kSign
                        : (((bits & ~kSign) + (1u << (kDropped - 1))) >> kDropped) << kDropped;
  return (bits & kSign) != 0 ? kSign - magnitude : kSign + magnitude;
}

namespace {

/// Walks ascending positions and says of each whether it is guarded.
class GuardWalk {
 public:
  GuardWalk(const Guards& guards, uint32_t length)
      : guards_(guards), recent_from_(length - std::min(length, guards.recent)) {}

  bool Guarded(uint32_t position) {
    while (next_ < guards_.pinned.size() && guards_.pinned[next_].end <= position) ++next_;
    const bool pinned = next_ < guards_.pinned.size() && guards_.pinned[next_].begin <= position;
    return pinned || position < guards_.sinks || position >= recent_from_;
  }

 private:
  const Guards& guards_;
  uint32_t recent_from_;
  size_t next_ = 0;
};

}  // namespace

Status SelectVictims(std::span<const float> score, std::span<const uint32_t> positions,
                     const Guards& guards, uint32_t keep, std::vector<uint64_t>& keys,
                     std::vector<uint32_t>& victims) {
  HIDANE_ASSERT(score.size() == positions.size());
  victims.clear();
  keys.clear();
  if (keep >= score.size()) return {};
  const size_t wanted = score.size() - keep;
  // Unique keys: score above, then index, which orders like the position.
  GuardWalk walk(guards, positions.back() + 1);
  for (size_t i = 0; i < score.size(); ++i)
    if (!walk.Guarded(positions[i])) keys.push_back(uint64_t{ScoreKey(score[i])} << 32 | i);
  if (keys.size() < wanted)
    return Fail(Code::kInvalidArgument,
                fmt::format("{} of {} tokens can't stay: {} are guarded", keep, score.size(),
                            score.size() - keys.size()));
  std::ranges::nth_element(keys, keys.begin() + static_cast<ptrdiff_t>(wanted) - 1);
  victims.resize(wanted);
  std::ranges::transform(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(wanted),
                         victims.begin(), [](uint64_t key) { return static_cast<uint32_t>(key); });
  std::ranges::sort(victims);
  return {};
}

}  // namespace hidane::vtoken
