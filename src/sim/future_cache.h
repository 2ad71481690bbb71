#pragma once
#include <cstdint>
#include <queue>
#include <vector>

namespace hidane::sim {

/// A cache that knows the future: of all tokens it has seen it keeps those that are needed
/// soonest. Tokens come in segments that are always needed together. O(log segments) a call.
class FutureCache {
 public:
  static constexpr uint32_t kNever = UINT32_MAX;

  FutureCache(uint64_t capacity, size_t segments) : capacity_(capacity), segments_(segments) {}

  uint64_t Held(uint32_t segment) const { return segments_[segment].held; }

  /// The segment's `tokens` are there now, and are needed next at step `next`.
  void Put(uint32_t segment, uint64_t tokens, uint32_t next) {
    Segment& one = segments_[segment];
    total_ -= one.held;
    one = {next == kNever ? 0 : tokens, next};
    total_ += one.held;
    if (next != kNever) latest_.push({next, segment});
  }

  /// Gives up what is needed latest, until the rest fits.
  void Shrink() {
    while (total_ > capacity_) {
      const auto [next, segment] = latest_.top();
      Segment& one = segments_[segment];
      const uint64_t over = total_ - capacity_;
      if (one.next == next && one.held > over) {
        one.held -= over;
        total_ -= over;
        return;
      }
      latest_.pop();
      if (one.next != next) continue;  // needed and put since
      total_ -= one.held;
      one.held = 0;
    }
  }

 private:
  struct Segment {
    uint64_t held = 0;
    uint32_t next = kNever;
  };

  uint64_t capacity_;
  uint64_t total_ = 0;
  std::vector<Segment> segments_;
  std::priority_queue<std::pair<uint32_t, uint32_t>> latest_;  ///< (next, segment)
};

}  // namespace hidane::sim
