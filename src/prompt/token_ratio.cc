#include "prompt/token_ratio.h"

#include <algorithm>
#include <cmath>

namespace hidane::prompt {

uint32_t TokenRatio::Tokens(uint64_t bytes) const {
  if (bytes == 0) return 0;
  const double tokens = std::round(static_cast<double>(bytes) * tokens_per_byte());
  return static_cast<uint32_t>(std::clamp(tokens, 1.0, 4e9));
}

void TokenRatio::Observe(uint64_t bytes, uint64_t tokens) {
  constexpr double kMemoryBytes = 1 << 20;
  if (bytes == 0 || tokens > bytes || tokens * 64 < bytes) return;
  const double keep = std::exp2(-static_cast<double>(bytes) / kMemoryBytes);
  bytes_ = bytes_ * keep + static_cast<double>(bytes);
  tokens_ = tokens_ * keep + static_cast<double>(tokens);
}

}  // namespace hidane::prompt
