#pragma once
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace hidane::vtoken {

/// When a victim stops being read, and when its slot is won back.
enum class Mode : uint8_t {
  kExact,   ///< both at the epoch that evicts it: the slots attention reads are all live
  kMasked,  ///< read no more at once, by a kernel that takes live(); won back by Epoch::Repair
  kLazy,    ///< both at Epoch::Repair: what is read depends on load. Opt-in
};

constexpr std::string_view Name(Mode mode) {
  return mode == Mode::kExact ? "exact" : mode == Mode::kMasked ? "masked" : "lazy";
}

/// kInvalidArgument, param "mode", for any other name.
Result<Mode> ModeOf(std::string_view name);

}  // namespace hidane::vtoken
