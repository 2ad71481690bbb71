#include "vtoken/budget_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hidane::vtoken {
namespace {

constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();

tl::unexpected<Error> OutOfRange(std::string_view field, double value, std::string_view range) {
  return Fail(Code::kInvalidArgument, fmt::format("{} {} isn't in {}", field, value, range),
              std::string(field));
}

}  // namespace

Result<BudgetController> BudgetController::Make(const BudgetConfig& config,
                                                const PolicyTraits& traits, uint32_t guarded_pins) {
  if (!(config.keep > 0 && config.keep <= 1)) return OutOfRange("keep", config.keep, "(0, 1]");
  if (!(config.evict_max > 0 && config.evict_max <= 1))
    return OutOfRange("evict_max", config.evict_max, "(0, 1]");
  if (!(config.lost_mass_max >= 0 && config.lost_mass_max <= 1))
    return OutOfRange("lost_mass_max", config.lost_mass_max, "[0, 1]");
  const uint64_t guarded = uint64_t{traits.sinks} + traits.recent + guarded_pins;
  if (config.cap != 0 && config.cap <= guarded)
    return Fail(Code::kInvalidArgument,
                fmt::format("budget {}: {} tokens are guarded, one more at least is needed",
                            config.cap, guarded),
                "budget");
  BudgetController made;
  made.config_ = config;
  made.trigger_ = config.trigger.value_or(traits.trigger);
  made.floor_ = static_cast<uint32_t>(std::max<uint64_t>(guarded + 1, config.min_tokens));
  if (config.cap != 0) made.floor_ = std::min(made.floor_, config.cap);
  made.recent_ = traits.recent;
  made.recent_share_ = traits.recent_share;
  return made;
}

// Grows by at most one a token, which NextRun's search relies on.
uint32_t BudgetController::Target(uint32_t logical) const {
  const auto share = static_cast<uint32_t>(std::ceil(config_.keep * logical));
  const uint32_t most = config_.cap == 0 ? share : std::min(share, config_.cap);
  return std::max(most, floor_);
}

bool BudgetController::DecodeRun(const Lengths& at) const {
  const uint32_t target = Target(at.logical);
  if (at.live <= target) return false;
  const bool over = trigger_.over != 0 && at.live - target >= trigger_.over;
  return over || (trigger_.every != 0 && (at.logical - at.prompt) % trigger_.every == 0);
}

std::optional<uint32_t> BudgetController::KeepAt(const Lengths& at) const {
  if (full_ || at.logical < at.prompt) return std::nullopt;
  const uint32_t target = Target(at.logical);
  if (at.live <= target) return std::nullopt;
  if (at.logical == at.prompt ? !trigger_.after_prefill : !DecodeRun(at)) return std::nullopt;
  const auto most = std::max(1u, static_cast<uint32_t>(config_.evict_max * at.live));
  return std::max(target, at.live - most);
}

// Live minus target never shrinks while all tokens live: a search by halves finds where it
// suffices.
uint32_t BudgetController::FirstOver(const Lengths& from, uint32_t surplus) const {
  const auto reached = [&](uint32_t tokens) {
    return uint64_t{from.live} + tokens >= uint64_t{Target(from.logical + tokens)} + surplus;
  };
  uint32_t low = 1, high = 1u << 30;
  if (!reached(high)) return kNever;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (reached(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return from.logical + low;
}

uint32_t BudgetController::NextRun(const Lengths& at) const {
  if (full_) return kNever;
  Lengths from = at;
  if (at.logical < at.prompt) {
    from = {at.prompt, at.prompt, at.live + (at.prompt - at.logical)};
    if (KeepAt(from)) return at.prompt;
  }
  const uint32_t over = trigger_.over == 0 ? kNever : FirstOver(from, trigger_.over);
  const uint32_t surplus = trigger_.every == 0 ? kNever : FirstOver(from, 1);
  if (surplus == kNever) return over;
  const uint32_t rest = (surplus - at.prompt) % trigger_.every;
  return std::min(over, surplus + (rest == 0 ? 0 : trigger_.every - rest));
}

uint32_t BudgetController::RecentOf(uint32_t keep) const {
  return std::max(recent_, static_cast<uint32_t>(recent_share_ * static_cast<float>(keep)));
}

bool BudgetController::Accept(double lost_mass) {
  if (lost_mass > config_.lost_mass_max) full_ = true;
  return !full_;
}

}  // namespace hidane::vtoken
