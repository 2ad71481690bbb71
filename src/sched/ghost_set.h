#pragma once
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/hash.h"
#include "sched/block_digest.h"

namespace hidane::sched {

/// Remembers the digests of blocks that this engine once held, so that computing one again can be
/// told from computing it for the first time. Bounded: two generations of `capacity` digests; when
/// the young one is full it becomes the old one, whose digests are forgotten. A digest is
/// remembered until at least `capacity` others were added after it, by its first 64 bits: a
/// collision miscounts a block.
class GhostSet {
 public:
  explicit GhostSet(size_t capacity) : capacity_(capacity) {}

  bool Contains(const Sha256Digest& digest) const {
    return young_.contains(Print(digest)) || old_.contains(Print(digest));
  }
  void Add(const Sha256Digest& digest) {
    young_.insert(Print(digest));
    if (young_.size() < capacity_) return;
    std::swap(young_, old_);
    young_.clear();
  }
  void Clear() {
    young_.clear();
    old_.clear();
  }
  size_t size() const { return young_.size() + old_.size(); }  ///< <= 2 * capacity

 private:
  static uint64_t Print(const Sha256Digest& digest) { return DigestHash()(digest); }
  using Set = boost::unordered_flat_set<uint64_t>;
  Set young_, old_;
  size_t capacity_;
};

}  // namespace hidane::sched
