#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace hidane {

/// An integer that mixes only with its own kind, so that a slot can't be passed as a position.
template <class Rep, class Tag>
class Strong {
 public:
  using rep = Rep;
  constexpr Strong() = default;
  constexpr explicit Strong(Rep v) : v_(v) {}
  constexpr Rep value() const { return v_; }
  friend constexpr auto operator<=>(Strong, Strong) = default;

 private:
  Rep v_{};
};

using TokenId = int32_t;                                ///< vocabulary index
using BlockId = Strong<uint32_t, struct BlockIdTag>;    ///< physical KV block, 0-based
using SeqId = Strong<uint64_t, struct SeqIdTag>;        ///< one sequence inside one engine
using WorkerId = Strong<uint32_t, struct WorkerIdTag>;  ///< one upstream engine (or DP rank)

}  // namespace hidane

template <class Rep, class Tag>
struct std::hash<hidane::Strong<Rep, Tag>> {
  size_t operator()(hidane::Strong<Rep, Tag> s) const noexcept {
    return std::hash<Rep>{}(s.value());
  }
};
