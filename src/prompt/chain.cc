#include "prompt/chain.h"

#include <algorithm>

#include "base/hash.h"
#include "base/rng.h"

namespace hidane::prompt {

void Identity::Clear() {
  model.clear();
  chain.clear();
  ends.clear();
  message_ends.clear();
  root = 0;
  tools_end = k1_end = k2_end = tokens = 0;
}

uint64_t ChainRoot(uint64_t salt, std::string_view model) {
  return Mix64(Xxh3(model, salt));
}

void AppendPart(std::string_view part, Identity& identity) {
  uint64_t link = identity.HashAt(identity.size());
  uint32_t end = identity.bytes();
  for (size_t at = 0; at < part.size(); at += kChainBlockBytes) {
    const std::string_view block = part.substr(at, kChainBlockBytes);
    link = Mix64(link ^ Xxh3(block));
    end += static_cast<uint32_t>(block.size());
    identity.chain.push_back(link);
    identity.ends.push_back(end);
  }
}

}  // namespace hidane::prompt
