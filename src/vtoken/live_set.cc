#include "vtoken/live_set.h"

#include "base/assert.h"

namespace hidane::vtoken {

LiveSet::LiveSet(uint32_t block_size) : block_size_(block_size) {
  HIDANE_ASSERT(block_size >= 1 && block_size <= UINT16_MAX);
}

void LiveSet::AssignDense(uint32_t slots) {
  words_.clear();
  occupancies_.clear();
  slots_ = count_ = 0;
  Append(slots);
}

void LiveSet::Append(uint32_t n) {
  const uint32_t first = slots_, end = slots_ + n;
  const uint32_t blocks = (end + block_size_ - 1) / block_size_;
  words_.resize((uint64_t{blocks} * block_size_ + 63) / 64);
  occupancies_.resize(blocks);
  for (uint32_t at = first; at < end;) {
    const uint32_t width = std::min(64 - at % 64, end - at);
    words_[at / 64] |= ~uint64_t{0} >> (64 - width) << at % 64;
    at += width;
  }
  for (uint32_t at = first; at < end;) {
    const uint32_t width = std::min(block_size_ - at % block_size_, end - at);
    occupancies_[at / block_size_] += static_cast<uint16_t>(width);
    at += width;
  }
  slots_ = end;
  count_ += n;
}

void LiveSet::RemoveLast(uint32_t n) {
  HIDANE_ASSERT(n <= slots_);
  for (uint32_t end = slots_ - n; slots_ > end; --slots_) {
    if (live(slots_ - 1)) Kill(slots_ - 1);
  }
  const uint32_t blocks = (slots_ + block_size_ - 1) / block_size_;
  words_.resize((uint64_t{blocks} * block_size_ + 63) / 64);
  occupancies_.resize(blocks);
}

bool LiveSet::Kill(uint32_t slot) {
  HIDANE_ASSERT(slot < slots_);
  const uint64_t bit = uint64_t{1} << slot % 64;
  if ((words_[slot / 64] & bit) == 0) return false;
  words_[slot / 64] ^= bit;
  --occupancies_[slot / block_size_];
  --count_;
  return true;
}

bool LiveSet::Revive(uint32_t slot) {
  HIDANE_ASSERT(slot < slots_);
  const uint64_t bit = uint64_t{1} << slot % 64;
  if ((words_[slot / 64] & bit) != 0) return false;
  words_[slot / 64] ^= bit;
  ++occupancies_[slot / block_size_];
  ++count_;
  return true;
}

uint32_t LiveSet::CountFirst(uint32_t block, uint32_t n) const {
  uint32_t count = 0;
  for (uint32_t at = block * block_size_, end = at + n; at < end; at += 64) {
    count += static_cast<uint32_t>(std::popcount(Bits(at, std::min(64u, end - at))));
  }
  return count;
}

}  // namespace hidane::vtoken
