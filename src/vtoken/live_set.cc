#include "vtoken/live_set.h"

#include "base/assert.h"

namespace hidane::vtoken {

LiveSet::LiveSet(uint32_t block_size, Memory memory)
    : block_size_(block_size),
      shift_(std::has_single_bit(block_size) ? std::bit_width(block_size) - 1 : 32),
      words_(memory),
      occupancies_(memory) {
  HIDANE_ASSERT(block_size >= 1 && block_size <= UINT16_MAX);
}

void LiveSet::MakeRoom(uint32_t slots) {
  const uint32_t blocks = BlocksOf(slots);
  vtoken::MakeRoom(words_, WordsOf(blocks));
  vtoken::MakeRoom(occupancies_, blocks);
}

void LiveSet::AssignDense(uint32_t slots) {
  const uint32_t blocks = BlocksOf(slots);
  words_.assign(slots / 64, ~uint64_t{0});
  if (slots % 64 != 0) words_.push_back(LowBits(slots % 64));
  words_.resize(WordsOf(blocks));
  occupancies_.assign(blocks, static_cast<uint16_t>(block_size_));
  if (slots % block_size_ != 0) {
    occupancies_.back() = static_cast<uint16_t>(slots % block_size_);
  }
  slots_ = count_ = slots;
}

void LiveSet::Append(uint32_t n) {
  const uint32_t first = slots_, end = slots_ + n;
  const uint32_t blocks = BlocksOf(end);
  words_.resize(WordsOf(blocks));
  occupancies_.resize(blocks);
  SetBits(words_, first, n);
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
  const uint32_t blocks = BlocksOf(slots_);
  words_.resize(WordsOf(blocks));
  occupancies_.resize(blocks);
}

bool LiveSet::Kill(uint32_t slot) {
  HIDANE_ASSERT(slot < slots_);
  const uint64_t bit = uint64_t{1} << slot % 64;
  if ((words_[slot / 64] & bit) == 0) return false;
  words_[slot / 64] ^= bit;
  --occupancies_[BlockOf(slot)];
  --count_;
  return true;
}

bool LiveSet::Revive(uint32_t slot) {
  HIDANE_ASSERT(slot < slots_);
  const uint64_t bit = uint64_t{1} << slot % 64;
  if ((words_[slot / 64] & bit) != 0) return false;
  words_[slot / 64] ^= bit;
  ++occupancies_[BlockOf(slot)];
  ++count_;
  return true;
}

void LiveSet::AddCountFirst(uint32_t n, std::span<uint32_t> sums) const {
  const uint32_t size = block_size_;
  if (size != 8 && size != 16 && size != 32) {
    for (uint32_t b = 0; b < sums.size(); ++b) sums[b] += CountFirst(b, n);
    return;
  }
  // Several blocks in a word: their counts come at once, each in its block's first byte.
  uint64_t mask = 0;
  for (uint32_t at = 0; at < 64; at += size) mask |= LowBits(n) << at;
  const auto blocks = static_cast<uint32_t>(sums.size());
  for (uint32_t b = 0, w = 0; b < blocks; ++w) {
    uint64_t counts = ByteCounts(words_[w] & mask);
    for (uint32_t width = 8; width < size; width *= 2) counts += counts >> width;
    for (const uint32_t end = std::min(b + 64 / size, blocks); b < end; ++b, counts >>= size) {
      sums[b] += static_cast<uint8_t>(counts);
    }
  }
}

}  // namespace hidane::vtoken
