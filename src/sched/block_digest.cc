#include "sched/block_digest.h"

#include <bit>

namespace hidane::sched {

static_assert(std::endian::native == std::endian::little, "digests hash tokens as they lie");

std::vector<Sha256Digest> BlockDigester::Chain(std::span<const TokenId> tokens, uint32_t block_size,
                                               std::string_view salt) {
  std::vector<Sha256Digest> chain;
  const size_t full = tokens.size() / block_size;
  chain.reserve(full);
  while (chain.size() < full) {
    chain.push_back(Next(chain, tokens.subspan(chain.size() * block_size, block_size), salt));
  }
  return chain;
}

Sha256Digest BlockDigester::Next(std::span<const Sha256Digest> chain,
                                 std::span<const TokenId> tokens, std::string_view salt) {
  const Sha256Digest parent = chain.empty() ? Sha256Digest{} : chain.back();
  sha_.Update(parent.data(), parent.size());
  sha_.Update(tokens.data(), tokens.size_bytes());
  sha_.Update(salt);
  return sha_.Finish();
}

}  // namespace hidane::sched
