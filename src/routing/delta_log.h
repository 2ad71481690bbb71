#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "routing/delta.h"

namespace hidane::routing {

/// The clock of one replica's writes, and those that it has yet to tell. Bounded: when nobody
/// takes them uses go first, then the older half of the changes. Not thread-safe.
class DeltaLog {
 public:
  explicit DeltaLog(uint32_t replica) : replica_(replica) {}

  Stamp Next() { return {++epoch_, replica_}; }
  /// Another replica's write was seen: ours come after it.
  void Seen(const Stamp& stamp) { epoch_ = std::max(epoch_, stamp.epoch); }
  void Push(const Delta& delta) {
    constexpr size_t kMost = 65'536;
    if (pending_.size() >= kMost) MakeRoom(kMost / 2);
    pending_.push_back(delta);
  }
  /// A request of a prefix at home there, with `tokens` behind it.
  void PushUse(uint64_t k1, uint64_t worker, uint32_t tokens) {
    Push({.key = k1,
          .worker = worker,
          .stamp = Next(),
          .tokens = tokens,
          .kind = Delta::Kind::kUse});
  }
  std::vector<Delta> Take() { return std::exchange(pending_, {}); }

 private:
  void MakeRoom(size_t left) {
    std::erase_if(pending_, [](const Delta& d) { return d.kind == Delta::Kind::kUse; });
    if (pending_.size() > left) {
      pending_.erase(pending_.begin(), pending_.end() - static_cast<ptrdiff_t>(left));
    }
  }

  uint32_t replica_;
  uint64_t epoch_ = 0;
  std::vector<Delta> pending_;
};

}  // namespace hidane::routing
