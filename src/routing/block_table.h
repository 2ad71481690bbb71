#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hidane::routing {

/// A map from block hashes to small numbers whose lookup is one memory access, which can be begun
/// ahead. Open addressing with linear probing; an erased entry's successors move up (Knuth, "The
/// Art of Computer Programming", volume 3, 6.4, algorithm R), so that steady insertion and erasure
/// never rehash. Not thread-safe.
class BlockTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;  ///< no value

  /// kNone: not there.
  uint32_t Find(uint64_t block) const {
    if (slots_.empty()) return kNone;
    return slots_[Place(block)].value;
  }
  /// Begins the memory access of a Find.
  void Prefetch(uint64_t block) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[Home(block)]);
  }
  /// Adds or changes. REQUIRES: value != kNone.
  void Set(uint64_t block, uint32_t value);
  void Erase(uint64_t block);

  size_t size() const { return size_; }
  size_t bytes() const { return slots_.size() * sizeof(Slot); }

 private:
  struct Slot {
    uint64_t block = 0;
    uint32_t value = kNone;
  };

  size_t Home(uint64_t block) const { return (block * 0x9E3779B97F4A7C15u) >> shift_; }
  size_t Next(size_t at) const { return (at + 1) & (slots_.size() - 1); }
  // Where it is, or would be.
  size_t Place(uint64_t block) const {
    size_t at = Home(block);
    while (slots_[at].value != kNone && slots_[at].block != block) at = Next(at);
    return at;
  }
  void Grow();

  std::vector<Slot> slots_;  // a power of two, never full
  unsigned shift_ = 64;      // bits of a hash that name no slot
  size_t size_ = 0;
};

}  // namespace hidane::routing
