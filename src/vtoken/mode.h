#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace hidane::vtoken {

/// When a victim stops being read, and when its slot is won back.
enum class Mode : uint8_t {
  kExact,   ///< both at the epoch that evicts it: the slots attention reads are all live
  kMasked,  ///< read no more at once, by a kernel that takes live(); won back by Epoch::Repair
  kLazy,    ///< both at Epoch::Repair: what is read depends on load. Opt-in
};

constexpr std::optional<Mode> ModeOf(std::string_view name) {
  if (name == "exact") return Mode::kExact;
  if (name == "masked") return Mode::kMasked;
  if (name == "lazy") return Mode::kLazy;
  return std::nullopt;
}

}  // namespace hidane::vtoken
