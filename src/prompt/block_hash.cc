#include "prompt/block_hash.h"

#include "base/hash.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "prompt/block_hash.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef HIDANE_PROMPT_BLOCK_HASH
#define HIDANE_PROMPT_BLOCK_HASH
namespace hidane::prompt {

// XXH3's constants for an input of 256 bytes: four stripes, and the default secret.
constexpr size_t kAccumulators = 8;
constexpr size_t kStripeBytes = 64;
constexpr size_t kMergeSecret = 11;
constexpr uint64_t kPrime64_1 = 0x9e3779b185ebca87;

// Where in the secret each stripe's key begins: eight bytes further for each, but for the last.
constexpr size_t kStripeSecret[] = {0, 8, 16, 121};

HWY_ALIGN constexpr uint64_t kStart[kAccumulators] = {
    0xc2b2ae3d,         kPrime64_1, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9,
    0x85ebca77c2b2ae63, 0x85ebca77, 0x27d4eb2f165667c5, 0x9e3779b1};

constexpr uint8_t kSecret[] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};

}  // namespace hidane::prompt
#endif

HWY_BEFORE_NAMESPACE();
namespace hidane::prompt::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

void HashAll(const char* blocks, size_t count, uint64_t* hashes) {
  for (size_t i = 0; i < count; ++i)
    hashes[i] = Xxh3(blocks + i * kChainBlockBytes, kChainBlockBytes);
}

#else

template <class D>
HWY_INLINE hn::Vec<D> Words(D d, const void* at, size_t first) {
  return hn::LoadU(d, static_cast<const uint64_t*>(at) + first);
}

// What one stripe adds to the accumulators from `first` on.
template <class D>
HWY_INLINE hn::Vec<D> Mixed(D d, const char* stripe, const uint8_t* secret, size_t first) {
  const hn::Repartition<uint32_t, D> halves;
  const auto data = Words(d, stripe, first);
  const auto keyed = hn::Xor(data, Words(d, secret, first));
  const auto product =
      hn::MulEven(hn::BitCast(halves, keyed), hn::BitCast(halves, hn::ShiftRight<32>(keyed)));
  return hn::Add(hn::Reverse2(d, data), product);
}

HWY_INLINE uint64_t Folded(const uint64_t* factors) {
  uint64_t upper;
  const uint64_t lower = hwy::Mul128(factors[0], factors[1], &upper);
  return lower ^ upper;
}

HWY_INLINE uint64_t HashOne(const char* block) {
  const hn::CappedTag<uint64_t, kAccumulators> d;
  HWY_ALIGN uint64_t merged[kAccumulators];
  HWY_UNROLL(4)
  for (size_t i = 0; i < kAccumulators; i += hn::Lanes(d)) {
    auto sum = hn::Load(d, kStart + i);
    HWY_UNROLL(4)
    for (size_t s = 0; s < std::size(kStripeSecret); ++s)
      sum = hn::Add(sum, Mixed(d, block + s * kStripeBytes, kSecret + kStripeSecret[s], i));
    hn::Store(hn::Xor(sum, Words(d, kSecret + kMergeSecret, i)), d, merged + i);
  }
  uint64_t hash = kChainBlockBytes * kPrime64_1;
  for (size_t i = 0; i < kAccumulators; i += 2) hash += Folded(merged + i);
  hash = (hash ^ hash >> 37) * 0x165667919e3779f9;
  return hash ^ hash >> 32;
}

void HashAll(const char* blocks, size_t count, uint64_t* hashes) {
  for (size_t i = 0; i < count; ++i) hashes[i] = HashOne(blocks + i * kChainBlockBytes);
}

#endif

}  // namespace hidane::prompt::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hidane::prompt {

HWY_EXPORT(HashAll);

void HashBlocks(const char* blocks, size_t count, uint64_t* hashes) {
  HWY_DYNAMIC_DISPATCH(HashAll)(blocks, count, hashes);
}

}  // namespace hidane::prompt
#endif
