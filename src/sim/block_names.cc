#include "sim/block_names.h"

#include <algorithm>
#include <cstring>

#include "base/rng.h"

namespace hidane::sim {
namespace {

Sha256Digest NameOf(uint64_t chain_value, uint64_t block) {
  const uint64_t words[4] = {Mix64(chain_value + block), chain_value, block, 0};
  Sha256Digest name;
  static_assert(sizeof words == sizeof name);
  std::memcpy(name.data(), words, sizeof words);
  return name;
}

}  // namespace

std::vector<Sha256Digest> NameBlocks(std::span<const uint64_t> chain,
                                     std::span<const uint32_t> ends, uint32_t block_size,
                                     uint64_t first) {
  std::vector<Sha256Digest> names;
  if (ends.empty()) return names;
  names.reserve(ends.back() / block_size - std::min<uint64_t>(first, ends.back() / block_size));
  uint64_t block = first;
  for (size_t i = 0; i < chain.size(); ++i) {
    for (; (block + 1) * block_size <= ends[i]; ++block) names.push_back(NameOf(chain[i], block));
  }
  return names;
}

}  // namespace hidane::sim
