#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/clock.h"

namespace hidane::sim {

/// What happens when: a binary heap by (time, order of Push), so that events of one instant
/// happen in the order in which they were planned and a run repeats exactly. Not thread-safe.
/// Cost: O(log n) a call.
template <class Event>
class EventQueue {
 public:
  void Push(TimePoint at, Event event) {
    heap_.push_back({at, next_++, std::move(event)});
    std::push_heap(heap_.begin(), heap_.end(), Later);
  }

  struct Due {
    TimePoint at;
    Event event;
  };
  /// The earliest. REQUIRES: not empty.
  Due Pop() {
    HIDANE_ASSERT(!heap_.empty());
    std::pop_heap(heap_.begin(), heap_.end(), Later);
    Due due{heap_.back().at, std::move(heap_.back().event)};
    heap_.pop_back();
    return due;
  }
  TimePoint next_at() const { return heap_.front().at; }  ///< REQUIRES: not empty
  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }

 private:
  struct Entry {
    TimePoint at;
    uint64_t order;
    Event event;
  };
  static bool Later(const Entry& a, const Entry& b) {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }

  std::vector<Entry> heap_;
  uint64_t next_ = 0;
};

}  // namespace hidane::sim
