#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "base/bits.h"
#include "vtoken/memory.h"

namespace hidane::vtoken {

/// Which table slots of one unit hold a live token, and how many in each block.
///
///   block_size 4, 10 slots:   [1 1 0 1] [0 0 0 0] [1 1 . .]   occupancies 3 0 2, count 5
///
/// Costs 1 bit per slot and 2 bytes per block. Kill and Revive are O(1).
class LiveSet {
 public:
  /// REQUIRES: 1 <= block_size <= 65535.
  explicit LiveSet(uint32_t block_size, Memory memory = nullptr);

  /// Room for `slots` slots in all: Append up to there can't fail.
  void MakeRoom(uint32_t slots);
  /// Slots 0 .. `slots` - 1, all live. Keeps its memory.
  void AssignDense(uint32_t slots);
  /// `n` live slots more, behind the last.
  void Append(uint32_t n);
  /// Forgets the last `n` slots. REQUIRES: n <= slots().
  void RemoveLast(uint32_t n);
  /// A live slot dies, a dead one lives. False, and nothing changes, if it was so already.
  /// REQUIRES: slot < slots().
  bool Kill(uint32_t slot);
  bool Revive(uint32_t slot);

  uint32_t block_size() const { return block_size_; }
  uint32_t slots() const { return slots_; }
  uint32_t blocks() const { return static_cast<uint32_t>(occupancies_.size()); }
  uint32_t count() const { return count_; }  ///< live slots
  bool live(uint32_t slot) const { return words_[slot / 64] >> (slot % 64) & 1; }
  std::span<const uint16_t> occupancies() const { return occupancies_; }  ///< [blocks()]
  /// Slot i is bit i % 64 of word i / 64. Covers whole blocks; slots past the end are 0.
  std::span<const uint64_t> words() const { return words_; }
  /// Live slots among the first `n` of `block`. REQUIRES: n <= block_size().
  uint32_t CountFirst(uint32_t block, uint32_t n) const {
    uint32_t count = 0;
    for (uint32_t at = block * block_size_, end = at + n; at < end; at += 64) {
      count += static_cast<uint32_t>(ByteCounts(Bits(at, std::min(64u, end - at))) * kBytes >> 56);
    }
    return count;
  }
  /// Adds CountFirst(b, n) to sums[b], for every block. REQUIRES: sums.size() == blocks().
  void AddCountFirst(uint32_t n, std::span<uint32_t> sums) const;

  /// Calls fn(slot) for each live (dead) slot of [first, first + n), ascending. Slots past the end
  /// are dead. REQUIRES: first + n <= blocks() * block_size().
  template <class Fn>
  void ForEachLive(uint32_t first, uint32_t n, Fn&& fn) const {
    ForEach<false>(first, n, fn);
  }
  template <class Fn>
  void ForEachDead(uint32_t first, uint32_t n, Fn&& fn) const {
    ForEach<true>(first, n, fn);
  }

 private:
  static constexpr uint64_t kBytes = 0x0101'0101'0101'0101;
  // How many bits are set in each byte. (std::popcount is a call on plain x86-64.)
  static constexpr uint64_t ByteCounts(uint64_t x) {
    x -= x >> 1 & 0x55 * kBytes;
    x = (x & 0x33 * kBytes) + (x >> 2 & 0x33 * kBytes);
    return (x + (x >> 4)) & 0x0f * kBytes;
  }
  uint64_t Bits(uint32_t first, uint32_t n) const {  // 1 <= n <= 64
    const uint32_t word = first / 64, shift = first % 64;
    uint64_t bits = words_[word] >> shift;
    if (shift + n > 64) bits |= words_[word + 1] << (64 - shift);
    return bits & LowBits(n);
  }
  template <uint32_t kSize>
  void AddByWords(uint32_t n, std::span<uint32_t> sums) const;
  template <bool kDead, class Fn>
  void ForEach(uint32_t first, uint32_t n, Fn&& fn) const {
    for (uint32_t at = first, end = first + n; at < end; at += 64) {
      const uint32_t width = std::min(64u, end - at);
      uint64_t bits = Bits(at, width);
      if (kDead) bits = ~bits & LowBits(width);
      for (; bits != 0; bits &= bits - 1) fn(at + static_cast<uint32_t>(std::countr_zero(bits)));
    }
  }

  uint32_t BlocksOf(uint32_t slots) const { return (slots + block_size_ - 1) / block_size_; }
  size_t WordsOf(uint32_t blocks) const { return (uint64_t{blocks} * block_size_ + 63) / 64; }
  // Of a slot; a division costs as much as the rest of Kill.
  uint32_t BlockOf(uint32_t slot) const {
    return shift_ < 32 ? slot >> shift_ : slot / block_size_;
  }

  uint32_t block_size_, slots_ = 0, count_ = 0;
  uint32_t shift_;          // block_size_ = 1 << shift_, or 32
  Vector<uint64_t> words_;  // whole blocks; bits past slots_ are 0
  Vector<uint16_t> occupancies_;
};

}  // namespace hidane::vtoken
