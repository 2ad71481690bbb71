#include "sched/block_digest.h"

#include <bit>

namespace hidane::sched {

static_assert(std::endian::native == std::endian::little, "digests hash tokens as they lie");

void BlockDigester::Extend(std::span<const TokenId> tokens, uint32_t block_size,
                           std::string_view salt, std::vector<Sha256Digest>& chain) {
  const size_t full = tokens.size() / block_size;
  chain.reserve(full);
  while (chain.size() < full) {
    const Sha256Digest parent = chain.empty() ? Sha256Digest{} : chain.back();
    const auto block = tokens.subspan(chain.size() * block_size, block_size);
    sha_.Update(parent.data(), parent.size());
    sha_.Update(block.data(), block.size_bytes());
    sha_.Update(salt);
    chain.push_back(sha_.Finish());
  }
}

}  // namespace hidane::sched
