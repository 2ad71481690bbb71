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

Identity Identity::StaticPart() const {
  Identity part;
  part.model = model;
  part.root = root;
  part.chain.assign(chain.begin(), chain.begin() + k1_end);
  part.ends.assign(ends.begin(), ends.begin() + k1_end);
  part.message_ends = message_ends;
  std::erase_if(part.message_ends, [this](uint32_t end) { return end > k1_end; });
  part.tools_end = tools_end;
  part.k1_end = part.k2_end = k1_end;
  if (bytes() > 0) part.tokens = static_cast<uint32_t>(uint64_t{tokens} * part.bytes() / bytes());
  return part;
}

uint64_t ChainRoot(uint64_t salt, std::string_view model) {
  return Mix64(Xxh3(model, salt));
}

void AppendPart(std::string_view part, Identity& identity) {
  uint64_t link = identity.HashAt(identity.size());
  const size_t first = identity.size();
  const uint32_t begin = identity.bytes();
  const size_t whole = part.size() / kChainBlockBytes;
  const std::string_view rest = part.substr(whole * kChainBlockBytes);
  const size_t count = whole + (rest.empty() ? 0 : 1);
  identity.chain.resize(first + count);
  identity.ends.resize(first + count);
  uint64_t* const links = identity.chain.data() + first;
  HashBlocks(part.data(), whole, links);
  if (!rest.empty()) links[whole] = Xxh3(rest);
  for (size_t i = 0; i < count; ++i) {
    links[i] = link = Mix64(link ^ links[i]);
    const size_t end = std::min((i + 1) * kChainBlockBytes, part.size());
    identity.ends[first + i] = begin + static_cast<uint32_t>(end);
  }
}

}  // namespace hidane::prompt
