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
  switch (block_size_) {
    case 8:
      return AddByWords<8>(n, sums);
    case 16:
      return AddByWords<16>(n, sums);
    case 32:
      return AddByWords<32>(n, sums);
    default:
      for (uint32_t b = 0; b < sums.size(); ++b) sums[b] += CountFirst(b, n);
  }
}

// Several blocks in a word: their counts come at once, each in its block's first byte.
template <uint32_t kSize>
void LiveSet::AddByWords(uint32_t n, std::span<uint32_t> sums) const {
  constexpr uint32_t kBlocks = 64 / kSize;
  uint64_t mask = 0;
  for (uint32_t at = 0; at < 64; at += kSize) mask |= LowBits(n) << at;
  const uint64_t* word = words_.data();
  const auto counts = [mask, &word] {
    uint64_t c = ByteCounts(*word++ & mask);
    for (uint32_t width = 8; width < kSize; width *= 2) c += c >> width;
    return c;
  };
  uint32_t* at = sums.data();
  uint32_t* const end = at + sums.size();
  for (; end - at >= kBlocks; at += kBlocks) {
    const uint64_t c = counts();
    for (uint32_t i = 0; i < kBlocks; ++i) at[i] += static_cast<uint8_t>(c >> i * kSize);
  }
  for (uint64_t c = at < end ? counts() : 0; at < end; c >>= kSize)
    *at++ += static_cast<uint8_t>(c);
}

}  // namespace hidane::vtoken
