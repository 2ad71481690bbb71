#pragma once
#include <cstdint>

namespace hidane::vtoken {

/// Bounds of a sequence: within them no count of slots or blocks overflows.
inline constexpr uint32_t kTokensMax = 1u << 30;
inline constexpr uint32_t kUnitsMax = 1u << 20;

/// What has a live set of its own: a *unit*. All units of a sequence keep the same number of
/// tokens, so one block table and one length serve them all.
enum class Scope : uint8_t {
  kSequence,  ///< one unit: all layers keep the same tokens
  kLayer,     ///< unit id = layer
  kKvHead,    ///< unit id = layer * kv_heads + head
};

constexpr uint32_t UnitCount(Scope scope, uint32_t layers, uint32_t kv_heads) {
  if (scope == Scope::kSequence) return 1;
  return scope == Scope::kLayer ? layers : layers * kv_heads;
}

}  // namespace hidane::vtoken
