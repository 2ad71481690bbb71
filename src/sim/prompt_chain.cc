#include "sim/prompt_chain.h"

#include <algorithm>

#include "base/rng.h"

namespace hidane::sim {

void AppendTokens(uint64_t content, uint32_t tokens, prompt::Identity& prompt) {
  for (uint32_t at = 0; at < tokens; at += kChainTokens) {
    const uint32_t end = prompt.bytes() + std::min(kChainTokens, tokens - at);
    prompt.chain.push_back(Mix64(prompt.HashAt(prompt.size()) ^ Mix64(content + at)));
    prompt.ends.push_back(end);
  }
  prompt.tokens = prompt.bytes();
}

}  // namespace hidane::sim
